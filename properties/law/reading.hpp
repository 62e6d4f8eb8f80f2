#pragma once
// What a law reads off one call: for every output an interval that holds the truth if the kernel is
// what it declares.

#include <cstdint>
#include <functional>

#include "properties/law/interval.hpp"
#include "properties/law/paired_runs.hpp"

namespace attest::law {

std::int64_t flat(const Problem& problem, const Row& row) noexcept;

double output(const Run& call, const Row& row, std::int64_t channel);
const bound::ExpectedElement& element(const PlannedCall& call, const Row& row,
                                      std::int64_t channel);

/// Whether the row sees no key: an empty row, or no query at all.
bool blind(const PlannedCall& call, const Row& row);

/// Whether NaN may be what a right kernel returns for this element: nothing is proven of it, and a
/// format that the kernel declares for a step ends where f16 does, so that the step may overflow
/// and a difference of infinities follow. f32 holds every score and sum that is drawn, but the
/// lowest of its numbers as a mask's floor times log2(e), in a kernel that counts in base 2.
bool may_overflow(const Run& call, const bound::ExpectedElement& expected);

/// Where the true O_ic lies by the kernel's answer; everything where the bound is infinite, but NaN
/// ends where the answer is NaN and nothing of the kernel may overflow.
Interval truth(const Run& call, const Row& row, std::int64_t channel);

/// Where the true L_i lies by the kernel's answer, in natural units; the call has an LSE and the
/// row sees a key.
Interval lse_truth(const Run& call, const Row& row);

/// Whether exp is declared coarser than those of libraries: these are within 2 ulp, and theirs of 0
/// is 1.
bool coarse_exp(const Numerics& numerics) noexcept;

/// A tensor of the problem's role whose element (b, h, t, c) is value(b, h, t, c), rounded.
using ElementRule =
    std::function<double(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c)>;
Tensor tensor_of(const Problem& problem, Role role, const ElementRule& value);

/// A whole number from -most to most, over `over` (a power of two): exact in every format while
/// most is at most 256.
double on_grid(const Given& given, std::uint64_t stream, std::uint64_t index, std::int64_t most,
               double over);

/// Whole numbers from -most to most, each times `step`: exact in every format while most is at most
/// 256 and step is a power of two.
Tensor grid_tensor(const Given& given, const Problem& problem, Role role, std::uint64_t stream,
                   std::int64_t most, double step);

/// The problem with every mask, cache, position, sink and cap taken off, and lengths as given.
Problem plain(Problem problem, std::int64_t len_q, std::int64_t len_kv);

/// Names a stream of Trial's randomness by what it is for.
constexpr std::uint64_t stream_of(const char* purpose) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
    for (; *purpose != '\0'; ++purpose)
        hash = (hash ^ static_cast<std::uint8_t>(*purpose)) * 0x100000001b3ull;
    return hash;
}

}  // namespace attest::law
