#pragma once
// Outputs that were rounded to a narrower format than the one they are stored in.

#include <vector>

#include "properties/diagnosis/diagnose.hpp"

namespace attest::diagnosis {

/// Outputs that are of no narrower format refute it, but where a relation tells them apart.
std::vector<Explanation> narrower_outputs(const AllEvidence& evidence);

}  // namespace attest::diagnosis
