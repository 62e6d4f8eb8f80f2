#pragma once
// The verdict of a whole run, from its records, and the exit code that goes with it.

#include <cstdint>
#include <string>

#include "ci/record.hpp"

namespace attest {

inline constexpr int exit_holds = 0, exit_violated = 1, exit_bad_input = 2, exit_inconclusive = 3,
                     exit_internal = 4;

struct RunVerdict {
    std::string verdict;  ///< holds, violated, inconclusive, not_complete
    int exit = exit_inconclusive;
    std::string reason;   ///< why inconclusive although no single law is
    std::int64_t holds = 0, violated = 0, inconclusive = 0, not_applicable = 0, not_run = 0;
    std::int64_t cut = 0;  ///< laws that did not run although the profile has them
    std::int64_t cases = 0, elements = 0, discarded = 0;
    std::int64_t ran() const noexcept { return holds + violated + inconclusive; }
};

/// Worst first: violated; not complete; inconclusive, also where nothing ran or too many feature
/// pairs were never drawn; holds.
RunVerdict verdict_of(const Records& records, bool interrupted);

/// Whether a law that did not run was cut off: by an interruption or the end of the time.
bool was_cut(const Record& law);

}  // namespace attest
