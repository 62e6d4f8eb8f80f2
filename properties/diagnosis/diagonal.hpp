#pragma once
// Causal masks that end elsewhere than at the diagonal: some keys later or earlier, at the edge of
// a block of queries or keys, or where the longest sequence would. There are too many to try on
// every call; what one call agrees with is tried on all.

#include <vector>

#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// Of the calls in which the kernel was wrong, one that is causal is asked; none where there is
/// none.
std::vector<Deviation> diagonal_candidates(const std::vector<Evidence>& wrong);

/// True where every element of the call lies within the deviation's bounds, and some outside those
/// of the truth.
bool agrees(const Deviation& deviation, const Evidence& evidence);

}  // namespace attest::diagnosis
