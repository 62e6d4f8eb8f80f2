#pragma once
// Backward passes that are right but for an arithmetic coarser than declared: errors of its size,
// and none beyond.

#include <vector>

#include "properties/diagnosis/backward_evidence.hpp"
#include "properties/diagnosis/diagnose.hpp"

namespace attest::diagnosis {

/// The finest of each kind that allows for every gradient of `roles` in every wrong call, and that
/// right calls do not refute.
std::vector<Explanation> backward_coarser_steps(const AllBackwardEvidence& evidence,
                                                const std::vector<Role>& roles);

/// Ids of those sums whose bounds admit every call, however few elements show them.
std::vector<std::string> fitting_backward_steps(const AllBackwardEvidence& evidence,
                                                const std::vector<Role>& roles);

/// One of these: it says little, and nothing where another failure is beyond it.
bool is_backward_coarser_step(const std::string& id);

}  // namespace attest::diagnosis
