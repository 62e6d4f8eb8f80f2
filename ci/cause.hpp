#pragma once
// Causes before laws: one defect breaks many laws, so counterexamples with the same explanation are
// one cause. The same explanation is: the same known deviation; the same way to die; being right by
// itself and wrong in company; or none at all.

#include <vector>

#include "ci/record.hpp"

namespace attest {

/// The cause records of these counterexamples, most laws first. Writes each counterexample's cause
/// into it.
std::vector<Record> group_causes(std::vector<Record>& counterexamples);

}  // namespace attest
