#pragma once
// Where a claim holds that is true of all wrong answers and that some right ones refute: only for
// one query, from so many keys on, with a window.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/problem/problem.hpp"

namespace attest::diagnosis {

/// The calls in which something holds: "when Tq ≤ 4".
struct Scope {
    std::string says;
    std::function<bool(const Problem&)> holds;
};

/// A relation that is true of every problem of the first list and of none of the second, as "when
/// Tq = 1"; none where nothing tells them apart, or what does may do so by chance.
std::optional<Scope> scope_of(const std::vector<Problem>& wrong,
                              const std::vector<Problem>& refuting);

/// So many relations were tried on so many places of two sorts: that one of them parts the sorts is
/// no chance.
bool beyond_chance(double tried, std::size_t wrong, std::size_t right);

}  // namespace attest::diagnosis
