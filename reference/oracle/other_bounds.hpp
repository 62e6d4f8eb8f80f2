#pragma once
// Expectations under the other bounds: (s), against the declared structure, and (b), under the
// model of random rounding. Their verdicts are of other classes than bound (a)'s and are never
// mixed with it (../bound/README.md, "Classes of verdict"). And the average error, for statistics.

#include <optional>

#include "reference/bound/error_budget.hpp"
#include "reference/bound/structure_bound.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::oracle {

/// What a kernel of exactly the declared structure computes: value is the replayed output, bound
/// its bound (s). None where the structure is not declared for this problem. Rows that attend()
/// settles by kind are the same here.
std::optional<bound::Expected> attend_structure(const Problem& problem, const Dialect& dialect,
                                                const Numerics& numerics, const TensorSet& inputs,
                                                bound::TileOrder order);

/// As attend(), with bound (b) on outputs at probability `delta` an element (the LSE keeps bound
/// (a)).
bound::Expected attend_probable(const Problem& problem, const Dialect& dialect,
                                const Numerics& numerics, const TensorSet& inputs, double delta);

/// What a correct kernel's errors are expected to be, element by element. In double: no reference
/// is finer than the outputs of a kernel that computes in f64.
bound::ErrorBudget attend_budget(const Problem& problem, const Dialect& dialect,
                                 const Numerics& numerics, const TensorSet& inputs);

}  // namespace attest::oracle
