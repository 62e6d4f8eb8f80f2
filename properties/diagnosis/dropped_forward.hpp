#pragma once
// What a forward that drops weights computes instead, under the mask that is read off it: another
// factor on what it keeps, weights normalised again, a log-sum-exp of the kept weights, or another
// share of weights dropped than it was asked for.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/diagnosis/diagnose.hpp"

namespace attest::diagnosis {

/// Deviations of forward that are of dropout alone. `asked` holds the mask in dropout_keep.
std::vector<Deviation> dropped_forward_deviations();

/// Those of the calls of a counterexample under dropout; nothing is wrong in any of them where
/// `cases` is 0, and another question has to be asked.
Diagnosis dropped_forward(search::Kernel& kernel, const search::Counterexample& counterexample,
                          const std::vector<search::CaseRecord>& records);

/// The same for evidence that is at hand.
Diagnosis explain_dropped(const AllEvidence& evidence);

/// A rate that weights are dropped at where `asked` is meant.
struct OtherRate {
    const char *id, *says;
    double (*of)(double asked);
    const char* declared = "";  ///< as of an Explanation
};
std::span<const OtherRate> other_rates();

/// Weights that were read, with the rate that was asked for.
struct DroppedCount {
    double rate = 0;
    std::int64_t of = 0, dropped = 0;
};

/// The rate that all counts agree with, where the one asked for is refuted by them. Of several it
/// is the one that they agree with best.
std::optional<Explanation> dropout_at_another_rate(const std::vector<DroppedCount>& counts);

/// The same for a kernel: masks of many seeds are read at the rates of the counterexample and of
/// other cases of its law.
std::optional<Explanation> dropout_at_another_rate(search::Kernel& kernel,
                                                   const search::Counterexample& counterexample,
                                                   const std::vector<search::CaseRecord>& records);

/// Whether the kernel is wrong in the smallest case without dropout, too: what it drops is then not
/// to be blamed.
bool wrong_without_dropout(search::Kernel& kernel, const search::Counterexample& counterexample);

/// Why a counterexample fails under dropout alone, whose mask is the kernel's own: what it makes of
/// that, which weights it drops, how many.
Diagnosis diagnose_dropout(search::Kernel& kernel, const search::Counterexample& counterexample,
                           const std::vector<search::CaseRecord>& records);

}  // namespace attest::diagnosis
