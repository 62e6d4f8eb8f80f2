#pragma once
// An experiment, where no deviation explains gradients that are wrong only of tensors with strides
// of their own: whose strides are taken shows in no number.

#include <optional>
#include <vector>

#include "properties/diagnosis/backward_evidence.hpp"
#include "properties/diagnosis/diagnose.hpp"

namespace attest::diagnosis {

/// "strides_ignored": the same numbers in contiguous tensors are answered rightly, in every call,
/// none of which has such tensors. It says which tensors, where one call laid out in every way that
/// is made of its own layout and the plain one tells.
std::optional<Explanation> gradient_strides_ignored(search::Kernel& kernel,
                                                    const std::vector<BackwardEvidence>& wrong);

}  // namespace attest::diagnosis
