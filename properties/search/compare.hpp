#pragma once
// Observed outputs against the reference, with escalation: what double-double cannot decide is
// computed again in exact arithmetic, and so is every disagreement before it is reported.

#include "properties/law/verdict.hpp"
#include "reference/bound/expected.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::search {

/// One call and what came of it. References: used while they live.
struct Comparison {
    const Problem& problem;
    const Dialect& dialect;
    const Numerics& numerics;
    const TensorSet& inputs;
    const TensorSet& observed;
};

/// Judges every o and every lse, each where it was observed. Rows the dialect leaves unspecified
/// are not counted: an empty row under `refuse`, and its lse under `nan`.
law::Judgement compare_with(const Comparison& comparison, const bound::Expected& expected);

/// The same for expectations of another class, whose own error is certain: nothing is computed
/// again, and an undecided element counts as agreeing.
law::Judgement compare_as(const Comparison& comparison, const bound::Expected& expected,
                          law::ViolationClass grade);

}  // namespace attest::search
