#pragma once
// What is found out about the counterexamples of a run, several at once: the diagnosis is the
// longest part of a short run of a wrong kernel.

#include <atomic>
#include <optional>
#include <vector>

#include "properties/diagnosis/counterexample_report.hpp"
#include "properties/search/campaign.hpp"

namespace attest::ci {

/// How many ask at once, and when no further law is begun: ten seconds after an interrupt, at once
/// after a second one; of a run of so many seconds, half as many after the first was begun.
struct ExplanationLimits {
    int jobs = 1;
    const std::atomic<int>& interrupts;
    std::optional<double> run_seconds;
};

/// Of each law, in order, with `kernel` and up to jobs - 1 more of `another`. Without an
/// explanation where the kernel cannot be asked any more, or the limits are reached.
std::vector<diagnosis::CounterexampleReport> explanations(
    const std::vector<const search::LawResult*>& laws, search::Kernel& kernel,
    const search::KernelFactory& another, const ExplanationLimits& limits);

}  // namespace attest::ci
