#pragma once
// What is wrong where a known defect shows, whatever its numbers.

#include <vector>

#include "properties/diagnosis/cause_groups.hpp"

namespace attest::diagnosis {

/// What no name explains, and is wrong nowhere but where a named defect shows, becomes one cause
/// with it, and is told apart there: that defect makes more of these calls than its name predicts,
/// more often than a second one hides behind it.
void join_places(Groups& groups, std::vector<CounterexampleReport>& counterexamples);

}  // namespace attest::diagnosis
