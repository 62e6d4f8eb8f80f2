#pragma once
// The gradients of two calls held side by side, and sums of gradients that are known without any
// reference but the bounds.

#include <functional>
#include <optional>
#include <string>

#include "properties/law/gradient_run.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

/// Which element of the second call's gradient has the same truth as this one of the first; none
/// where nothing is promised. Empty: each its own.
using GradientMatch = std::function<std::optional<std::int64_t>(Role role, std::int64_t flat)>;

/// Every gradient that both have, to the bit or within both bounds.
Judgement same_gradients(const GradientRun& first, const GradientRun& second, bool bits,
                         const std::string& change, const GradientMatch& match = {});

/// The same of gradients alone: what backward gave when it was called again; to the bit, or within
/// the first one's bound.
Judgement same_again(const GradientRun& first, const TensorSet& again, bool bits,
                     const std::string& change);

/// Bits are promised where the kernel claims that both forward and backward repeat theirs.
bool repeats_gradients(const Numerics& numerics) noexcept;

/// Where the number x rounded to `format` came from, as it was handed over: itself.
inline Interval given(const Tensor& tensor, std::int64_t flat) {
    return Interval::exactly(tensor.get(flat));
}

/// The gradient that the row's LSE is given, of the LSE in natural units; 0 where none is.
Interval lse_gradient(const TensorSet& inputs, const Dialect& dialect, const Row& row);

/// sum over the elements (b, h, t, c) of x times the truth of the gradient of x, for one b and h.
Interval inner_product(const GradientRun& call, Role of, Role gradient, std::int64_t batch,
                       std::int64_t head);

}  // namespace attest::law
