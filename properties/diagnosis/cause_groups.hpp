#pragma once
// Counterexamples that are one cause, and what joins them.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "properties/diagnosis/counterexample_report.hpp"

namespace attest::diagnosis {

// What makes counterexamples one cause. Those nothing explains are one as well, until something
// tells them apart: a kernel has one defect more often than thirty. But answers that are wrong by
// themselves are apart from those that are right.
struct Group {
    enum class Kind : std::uint8_t { death, deviation, earlier_calls, unexplained };
    Kind kind = Kind::unexplained;
    std::string which;
    auto operator<=>(const Group&) const = default;
};
using Groups = std::map<Group, std::vector<std::size_t>>;

inline const Group unexplained{Group::Kind::unexplained, ""};
inline const Group unexplained_backward{Group::Kind::unexplained, "backward"};
inline const Group deaths_by_stray_read{Group::Kind::death, "read"};

/// Counterexamples of `from`, all or those that are `which`, become ones of `into`.
void join(Groups& groups, const Group& from, const Group& into,
          const std::function<bool(std::size_t)>& which = {});

/// The law that was broken is one of gradients.
bool differentiates(const CounterexampleReport& counterexample);

/// Those that no explanation was elected for.
Groups deaths_and_unexplained(const std::vector<CounterexampleReport>& counterexamples);

/// What is one cause with another in spite of its name, or for want of one.
void join_groups(Groups& groups, std::vector<CounterexampleReport>& counterexamples);

}  // namespace attest::diagnosis
