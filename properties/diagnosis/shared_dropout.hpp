#pragma once
// Weights that forward drops together though each has a chance of its own: one mask for all heads,
// for all sequences, whatever the seed.

#include <optional>

#include "properties/diagnosis/diagnose.hpp"

namespace attest::diagnosis {

/// Whether a canonical case is a problem that drops weights, is taken, and shows which in few
/// calls.
bool mask_is_readable(search::Kernel& kernel, const Case& c);

/// Masks are read off forward's outputs in the smallest case, the case as found and its relatives.
/// What is named holds of every weight of these, and of so many that it is no chance.
std::optional<Explanation> shared_dropout(search::Kernel& kernel,
                                          const search::Counterexample& counterexample);

}  // namespace attest::diagnosis
