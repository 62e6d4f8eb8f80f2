#pragma once
// One call's tensors in shared memory: inputs as their problem lays them, outputs and workspace
// poisoned.

#include "kernels/worker/arena.hpp"
#include "reference/problem/problem.hpp"

namespace attest::worker {

/// Lays all of it out and remembers the inputs. Throws InternalError where an input is not of its
/// problem's type, BadInput where the block table names no page.
void lay_out_call(Arena& arena, const Problem& problem, const TensorSet& inputs,
                  std::uint64_t workspace_bytes, const Variant& variant);

}  // namespace attest::worker
