#pragma once
// Some of the cases of a recorded run, drawn again from its seed and judged again.

#include <set>
#include <string>

#include "ci/options.hpp"
#include "ci/run_report.hpp"

namespace attest::ci {

struct Rerun {
    std::string difference;  ///< the first; empty: all came to the same
    std::string says;        ///< how many, and what was compared
    std::string open{};      ///< why nothing could be compared
    /// Files that the kernel's process executes, or that it is made of, and that are not what they
    /// were: another SHA-256, or none was recorded.
    std::set<std::string> other_files{};
};

/// `options.rerun` numbers at random, by options.seed where there is one. What is drawn under a
/// number, how the kernel ended and what the law said must be the same; so must every bit that it
/// returned, where it claims to be deterministic and the machine has the same instructions.
Rerun rerun_cases(const RunReport& report, const CommandOptions& options);

}  // namespace attest::ci
