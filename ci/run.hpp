#pragma once
// One judged run, from options to records on disk: what `check` and `certify` share.

#include <string>

#include "ci/options.hpp"
#include "ci/record.hpp"
#include "ci/run_verdict.hpp"
#include "kernels/interface/kernel_spec.hpp"
#include "kernels/interface/manifest.hpp"
#include "properties/search/campaign.hpp"

namespace attest {

struct FinishedRun {
    Records records;
    RunVerdict verdict;
    std::string directory;
};

/// Judges the kernel; results.jsonl lies complete in the folder when this returns.
FinishedRun run_and_record(const Options& options);

/// The options as they apply: those of an earlier run where it is resumed, the profile's defaults.
struct RunPlan {
    Options options;
    KernelSpec kernel;
    Profile profile;
    std::uint64_t seed = 0;
    Records earlier;                 ///< of the run that is resumed, without what is to run again
    std::vector<std::string> match;  ///< law globs for the campaign
};
RunPlan plan_run(const Options& options);

/// The first line of result.jsonl.
Record run_record(const RunPlan& plan, const Manifest& manifest);

/// Laws in catalogue order, cases by law and number.
void sort_records(Records& records);

}  // namespace attest
