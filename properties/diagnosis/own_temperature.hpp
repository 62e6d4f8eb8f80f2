#pragma once
// Calls of a scale each of its own, where no name tells how it is made: errors that follow the
// scores are none of chance, however small.

#include <optional>
#include <vector>

#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// Where of every wrong call all numbers agree with those of another scale, and far more of them
/// are wrong than there are calls.
std::optional<Explanation> temperatures_of_calls(const std::vector<Evidence>& wrong);

}  // namespace attest::diagnosis
