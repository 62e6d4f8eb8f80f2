#pragma once
// What a run says of itself beside its verdict, in words: its extent, what was skipped and why.

#include <map>
#include <string>

#include "ci/run_report.hpp"

namespace attest::ci {

/// The barriers that its process was not held in by, "proc, files"; empty of what is built in.
std::string absent_barriers(const KernelReport& kernel);

/// What no law of this run judged, of what a kernel may offer or this one declares.
std::string unjudged(const RunReport& report);
/// How often the kernel gave each reason for a refusal.
std::map<std::string, std::int64_t> refusals_of(const RunReport& report);

/// "b 33, hq 128, tq 6 145", nothing of an axis that says none; and "1/3".
std::string sizes_text(const search::Sizes& sizes);
std::string shard_text(const RunHeader& run);
/// "8 laws not applicable; hygiene.many_calls left out by the profile; 6.3 % of draws redrawn".
/// Each of the others is empty where there is none: the share the kernel refused, chance_of(), and
/// why there were fewer cases.
std::string skipped_text(const RunReport& report);
std::string refused_text(const RunReport& report);
std::string chance_text(const RunReport& report);
std::string fewer_cases_text(const RunReport& report);

/// Why laws that were to be judged were not, in a sentence; empty: none was left so.
std::string stopped_text(const RunReport& report);
/// The law whose failure left those behind it with fewer cases; none: nothing did.
const search::LawReport* stopped_by(const RunReport& report);

}  // namespace attest::ci
