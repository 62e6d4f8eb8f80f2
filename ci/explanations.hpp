#pragma once
// What is found out about the counterexamples of a run, several at once: the diagnosis is the
// longest part of a short run of a wrong kernel.

#include <atomic>
#include <vector>

#include "properties/diagnosis/counterexample_report.hpp"
#include "properties/search/campaign.hpp"

namespace attest::ci {

/// Of each law, in order, with `kernel` and up to jobs - 1 more of `another`. Without an
/// explanation where the kernel cannot be asked any more, ten seconds after an interrupt, and at
/// once after a second one.
std::vector<diagnosis::CounterexampleReport> explanations(
    const std::vector<const search::LawResult*>& laws, search::Kernel& kernel,
    const search::KernelFactory& another, int jobs, const std::atomic<int>& interrupts);

}  // namespace attest::ci
