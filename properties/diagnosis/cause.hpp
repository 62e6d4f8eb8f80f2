#pragma once
// Causes before laws: one defect breaks many laws, so counterexamples with the same explanation are
// one cause. The same explanation is: the same known deviation; the same way to die; being right by
// itself and wrong in company; or none at all.

#include <string>
#include <vector>

#include "properties/diagnosis/counterexample_report.hpp"

namespace attest::diagnosis {

struct CauseReport {
    std::string id, title;
    std::string lead;  ///< id of the counterexample a person reads first
    std::vector<std::string> laws;
    bool known = false;
    /// Of the laws, those in whose cases elements are wrong where the cause shows, and hold other
    /// numbers than it predicts.
    std::vector<std::string> other_numbers{};
};

/// The causes of these counterexamples, most laws first. Writes into each counterexample its cause
/// and, of the deviations that explain it, the one that is the cause's.
std::vector<CauseReport> group_causes(std::vector<CounterexampleReport>& counterexamples);

/// Where the cases of its own law do not tell when a cause's first counterexample fails, those of
/// all laws of that cause may.
void tell_boundaries(const std::vector<CauseReport>& causes,
                     std::vector<CounterexampleReport>& counterexamples,
                     const std::vector<const search::LawResult*>& laws);

}  // namespace attest::diagnosis
