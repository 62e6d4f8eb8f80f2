#pragma once
// Where a claim holds that is true of all wrong answers and that some right ones refute: only for
// one query, from so many keys on, with a window.

#include <optional>
#include <string>
#include <vector>

#include "reference/problem/problem.hpp"

namespace attest::diagnosis {

/// A relation that is true of every problem of the first list and of none of the second, as "when
/// Tq = 1"; none where nothing tells them apart, or what does may do so by chance.
std::optional<std::string> scope_of(const std::vector<Problem>& wrong,
                                    const std::vector<Problem>& refuting);

/// So many relations were tried on so many places of two sorts: that one of them parts the sorts is
/// no chance.
bool beyond_chance(double tried, std::size_t wrong, std::size_t right);

}  // namespace attest::diagnosis
