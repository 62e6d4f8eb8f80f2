#pragma once
// What becomes of an explanation when more calls have been asked than those it was found with.

#include <functional>
#include <optional>
#include <string>

#include "properties/diagnosis/diagnose.hpp"

namespace attest::diagnosis {

/// An explanation of calls that were chosen by nobody who knew it has to predict those too that
/// were chosen to refute it. What names where it holds is found anew: the relation may be another.
bool contradicted(const Diagnosis& found, const AllEvidence& evidence);

/// Above some length the kernel takes another path, and what is wrong there may be something else:
/// what explains all wrong calls that are shorter, and none that is longer, holds there. None where
/// `first` does not.
std::optional<Diagnosis> of_shorter(const Diagnosis& first, const AllEvidence& evidence,
                                    const std::function<bool(const std::string& id)>& refuted);

}  // namespace attest::diagnosis
