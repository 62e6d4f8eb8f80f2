#pragma once
// A Problem and a tensor as they cross to the worker.

#include <string>

#include "kernels/worker/arena.hpp"
#include "kernels/worker/protocol.hpp"
#include "reference/problem/problem.hpp"

namespace attest::worker {

/// Defaults are written out: the scale and the rotated channels are numbers, dim_v is never 0.
attest_problem to_abi(const Problem& problem);

/// Where each field of attest_problem lies, for workers that do not have the header: a line each,
/// "format_q i32 64 f64,f32,f16,bf16": name, type, offset and, of an enumeration, its words.
std::string problem_layout();

protocol::WireTensor to_wire(const TensorSlot& slot) noexcept;

}  // namespace attest::worker
