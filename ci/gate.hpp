#pragma once
// Two runs of the same cases held against each other: what the candidate lost. Whatever was wrong
// before and still is does not count; whatever is new does, unless a waiver names it.

#include <cstdint>
#include <string>
#include <vector>

#include "ci/run_report.hpp"
#include "ci/waiver.hpp"

namespace attest::ci {

struct GateChange {
    enum class Kind : std::uint8_t {
        worse,   ///< fails the gate
        waived,  ///< would, but a waiver names it
        better,
        told  ///< for information alone
    };
    Kind kind = Kind::worse;
    std::string subject;  ///< a law, or claims.deterministic, feature.window, size.len_kv, refused
    std::string baseline, candidate;
    std::string says;    ///< in a sentence; empty: the two say it all
    std::string cause;   ///< of a violation: its title
    std::string waiver;  ///< who waived it, why and until when
};

/// Changes as they are found.
struct GateChanges {
    std::vector<GateChange> list;
    void add(GateChange::Kind kind, std::string subject, std::string before, std::string after,
             std::string says = {}, std::string cause = {});
};

struct GateLimits {
    /// How many times larger a quantile of error/bound may be, of the same law, format and cases.
    double accuracy = 1.5;
    /// Below this share of the bound an error is as good as none, and is not held against another.
    static constexpr double floor = 0.01;
};

struct GateReport {
    std::vector<GateChange> changes;  ///< what fails first
    std::vector<std::string> notes;   ///< waivers that are expired, or that nothing needed
    std::int64_t compared = 0;        ///< laws that both judged
    /// Why "nothing worse" cannot be said, in sentences, and what would help; empty: it can.
    std::vector<std::string> undecided{}, remedies{};
    int exit = 0;
    std::int64_t count(GateChange::Kind kind) const;
    /// The hardest of the changes that these laws made; none: the gate says nothing of them.
    const GateChange* about(const std::vector<std::string>& laws) const;
    /// Who waived what these laws found, why and until when; empty: nobody, or not all of it.
    std::string waiver_of(const std::vector<std::string>& laws) const;
    /// Why what these laws found fails no gate: a waiver's words, or that it is as in the baseline.
    std::string excuse_of(const std::vector<std::string>& laws) const;
    /// What is worse and none of these violated laws made: less accurate, less taken, other claims.
    std::vector<const GateChange*> losses(const std::vector<std::string>& violated) const;
};

/// Both runs have ended. Worst first, then as the laws stand. 1 where something is worse; 3 where
/// nothing is, but one of them was cut. The remedies are the caller's, who knows the folders.
GateReport compare_runs(const RunReport& baseline, const RunReport& candidate,
                        const GateLimits& limits, const std::vector<Waiver>& waivers,
                        const std::string& today);

/// The part of it that is about what the kernels declare and take.
void compare_kernels(const RunReport& baseline, const RunReport& candidate, GateChanges& changes);

/// Why the two did not judge the same cases; empty: they did.
std::string other_cases(const RunReport& baseline, const RunReport& candidate);

}  // namespace attest::ci
