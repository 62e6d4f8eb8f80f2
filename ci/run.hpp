#pragma once
// One judged run, from options to its report on disk: what `check` and `certify` share.

#include <string>

#include "ci/options.hpp"
#include "ci/run_report.hpp"

namespace attest::ci {

/// The seed where CI is set and none is named, also that of the GoogleTest driver.
inline constexpr std::uint64_t ci_seed = 20261120;

/// The seed asked for, that of CI, or a random one.
std::uint64_t chosen_seed(const CommandOptions& options);

struct FinishedRun {
    RunReport report;  ///< with its end
    std::string directory;
};

/// Judges the kernel; results.jsonl lies complete in the folder when this returns.
FinishedRun run_and_record(const CommandOptions& options);

/// The options as they apply: those of an earlier run where it is resumed, the profile's defaults.
struct RunPlan {
    CommandOptions options;
    kernel::KernelSpec kernel;
    search::Profile profile;
    std::uint64_t seed = 0;
    RunReport earlier;               ///< of the run that is resumed, without what is to run again
    std::vector<std::string> match;  ///< law globs for the campaign
};
RunPlan plan_run(const CommandOptions& options);

/// What a run that is resumed had drawn: counted again where each case was recorded, as it may have
/// been cut before it could count.
std::vector<search::CoverageReport> drawn_before(const RunReport& earlier,
                                                 const kernel::Manifest& manifest);

/// BadInput where no law has a name that these globs match; none match all.
void require_some_law(const std::vector<std::string>& match);

/// A file's bytes. BadInput where it cannot be read.
std::string file_text(const std::string& path);
/// Their SHA-256; empty where there is no such file.
std::string file_digest(const std::string& path);

RunHeader run_header(const RunPlan& plan, const kernel::Manifest& manifest);

/// What an earlier kernel showed says nothing of another, nor what other laws judged: BadInput
/// where a run that goes on was begun with either.
void require_same_kernel(const RunPlan& plan, const RunHeader& now);

}  // namespace attest::ci
