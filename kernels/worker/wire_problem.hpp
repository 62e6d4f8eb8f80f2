#pragma once
// A Problem and a tensor as they cross the border.

#include "kernels/worker/arena.hpp"
#include "kernels/worker/protocol.hpp"
#include "reference/problem/problem.hpp"

namespace attest {

/// Defaults are written out: the scale and the rotated channels are numbers, dim_v is never 0.
protocol::Problem to_wire(const Problem& problem) noexcept;

protocol::Tensor to_wire(const Slot& slot) noexcept;

}  // namespace attest
