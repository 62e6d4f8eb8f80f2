#pragma once
// The input tensors of a case. Its values come from the counter-based generator, keyed by (seed,
// tensor, logical index).

#include "reference/problem/case.hpp"
#include "reference/problem/tensor.hpp"

namespace attest {

/// q, k, v and whatever the problem's features need (mask, lens, block table, slopes, sinks).
/// Boolean masks leave about 7 of 10 keys visible; additive ones mix finite biases with -inf. With
/// want_grad also d_o, with lse_grad d_lse; with a cache and lengths also positions. Keys of a
/// cache past a sequence's length are NaN.
TensorSet make_inputs(const Case& c);

}  // namespace attest
