#pragma once
// Observed gradients against the reference, with escalation: what double leaves undecided, and
// every disagreement before it is reported, is computed again in double-double.

#include "properties/law/verdict.hpp"
#include "properties/search/compare.hpp"
#include "reference/bound/expected.hpp"

namespace attest::search {

/// Judges every gradient that was observed. An element of which nothing is claimed is not counted.
law::Judgement compare_gradients_with(const Comparison& comparison,
                                      const bound::ExpectedGradients& expected);

/// The same against the declared structure: nothing is computed again, and an undecided element
/// counts as agreeing. A gradient that is not expected is not looked at.
law::Judgement compare_gradients_as_declared(const Comparison& comparison,
                                             const bound::ExpectedGradients& expected);

}  // namespace attest::search
