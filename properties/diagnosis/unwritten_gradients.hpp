#pragma once
// Gradients that are right wherever anything was written, and were not written where they are 0.

#include <vector>

#include "properties/diagnosis/backward_evidence.hpp"
#include "properties/diagnosis/diagnose.hpp"

namespace attest::diagnosis {

/// Every wrong element is NaN, some still as memory was before the call, and these are all there
/// are of a kind of place. All kinds that are so: a small call does not tell them apart.
std::vector<Explanation> unwritten_gradients(const std::vector<BackwardEvidence>& wrong,
                                             const std::vector<Role>& roles);

/// Every element NaN, also those that are exactly 0 whatever is multiplied.
std::optional<Explanation> nan_everywhere(const AllBackwardEvidence& evidence,
                                          const std::vector<Role>& roles);

}  // namespace attest::diagnosis
