#pragma once
// Which of the explanations of all counterexamples are told.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "properties/diagnosis/counterexample_report.hpp"

namespace attest::diagnosis {

/// What stands before an explanation's id where backward alone has it.
inline constexpr const char* of_backward = "backward: ";

/// One defect breaks many laws, and a small case of one law has several explanations: as few as
/// possible are to explain all. Each counterexample's diagnosis becomes the one elected for it, by
/// whose id they are returned. One that right answers to calls of other counterexamples refute is
/// told with the relation that parts them, else not at all.
std::map<std::string, std::vector<std::size_t>> elect_explanations(
    std::vector<CounterexampleReport>& counterexamples);

}  // namespace attest::diagnosis
