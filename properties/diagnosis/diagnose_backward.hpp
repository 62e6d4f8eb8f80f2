#pragma once
// Which wrong backward pass explains a kernel's gradients, by the rules of diagnose.hpp: every
// gradient that is wrong anywhere must agree with it in every call that is wrong, those that are
// right everywhere are right, and it must be told from the truth in enough elements.

#include <optional>

#include "properties/diagnosis/backward_evidence.hpp"
#include "properties/diagnosis/diagnose.hpp"

namespace attest::diagnosis {

/// None where no backward is wrong beside a forward that is right.
std::optional<Diagnosis> diagnose_backward(search::Kernel& kernel,
                                           const search::Counterexample& counterexample,
                                           const std::vector<search::CaseRecord>& records);

Diagnosis explain_backward(const AllBackwardEvidence& evidence);

/// What a deviation expects; none where the call means nothing to it.
std::optional<bound::ExpectedGradients> predict(const BackwardDeviation& deviation,
                                                const BackwardEvidence& evidence);

}  // namespace attest::diagnosis
