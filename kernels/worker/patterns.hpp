#pragma once
// What lies where nobody has written: two bytes, over and over, from every even offset on.

#include <cstddef>
#include <cstdint>

#include "reference/problem/tensor.hpp"

namespace attest::worker {

/// Fills [begin, end) of memory so that every even offset begins the pattern.
void fill(std::byte* base, std::uint64_t begin, std::uint64_t end, std::uint16_t pattern);

/// The first offset in [begin, end) that does not hold the pattern; end where all do.
std::uint64_t first_other(const std::byte* base, std::uint64_t begin, std::uint64_t end,
                          std::uint16_t pattern);

/// The flat index of the first element that is the pattern and nothing else; -1 where none is.
std::int64_t find_poison(const Tensor& tensor, std::uint16_t poison);

/// Whether an element of f32 or f64 is a NaN that was computed with the pattern: a processor passes
/// on which NaN it was given, of either sign and no longer signalling. A GPU does not.
bool holds_nan_of(const Tensor& tensor, std::uint16_t pattern);

/// Whether a mask of bytes was written, or some of it: no byte of a pattern is 0 or 1.
bool holds_answers(const Tensor& mask);

}  // namespace attest::worker
