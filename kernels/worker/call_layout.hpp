#pragma once
// One call's tensors in shared memory: laid as their problem and the kernel's manifest say, outputs
// and workspace poisoned.

#include <optional>
#include <vector>

#include "kernels/interface/manifest.hpp"
#include "kernels/worker/arena.hpp"
#include "kernels/worker/call_result.hpp"
#include "reference/problem/problem.hpp"

namespace attest::worker {

/// What is asked of the kernel, and which outputs it is given a place for.
struct Asked {
    protocol::Operation operation = protocol::Operation::forward;
    std::vector<Role> outputs = {Role::o, Role::lse};
};

/// Lays all of it out and remembers the inputs; refuses a problem whose tensors reach over more
/// addresses than this process may have. Throws InternalError where an input is not of its
/// problem's type, BadInput where the block table names no page.
std::optional<CallResult> lay_out_call(Arena& arena, const kernel::Manifest& manifest,
                                       const Problem& problem, const TensorSet& inputs,
                                       std::uint64_t workspace_bytes, const Variant& variant,
                                       const Asked& asked = {});

/// The outputs that the kernel says it wrote (a bit each), and whether it did.
void collect_outputs(Arena& arena, std::uint64_t returned, CallResult& result);

}  // namespace attest::worker
