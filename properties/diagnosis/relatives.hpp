#pragma once
// Relatives of a smallest case: the same features, but lengths, dimensions, heads, windows and
// scales varied, so that deviations which agree on the smallest case come apart.

#include <vector>

#include "reference/problem/case.hpp"

namespace attest::diagnosis {

/// Some of them may be problems that cannot be, or that the kernel refuses.
std::vector<Case> relatives(const Case& smallest);

}  // namespace attest::diagnosis
