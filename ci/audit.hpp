#pragma once
// Which law sees which planted bug, after how many cases, and what the diagnosis says; beside it
// what the rules of others see on random normal inputs of the same shapes.

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ci/peer_rules.hpp"
#include "kernels/interface/mutant.hpp"

namespace attest::ci {

struct AuditOptions {
    std::vector<std::string> match;  ///< globs on laws; empty: all
    std::uint64_t seed = 1;
    std::int64_t cases = 240;  ///< a law and seed, at most, of laws that the bug's row names; half
                               ///< of them on a change that is no bug
    std::int64_t cases_elsewhere = 30;  ///< of the others
    std::int64_t cases_simulated = 4;   ///< of the others, where threads are simulated
    std::int64_t seeds = 1;             ///< a law sees a bug that it sees under each of them
    std::int64_t peer_cases = 24;
    const std::atomic<int>* interrupted = nullptr;  ///< not 0: no further case
};

/// One law on one bug: over the seeds, in how many it was violated, and the most cases and seconds
/// that this took.
struct LawOnBug {
    std::string law;
    std::int64_t seen = 0, cases = 0;
    double seconds = 0;
};

/// What the diagnosis made of the first counterexample of the first law that must see the bug.
enum class Told : std::uint8_t { not_asked, right, silent, wrong };
std::string_view name(Told told);

/// How many outputs each rule of others rejected, and of how many.
struct PeerCount {
    std::array<std::int64_t, peer_rule_count> rejected{};
    std::int64_t cases = 0;
};

struct BugAudit {
    std::string bug, bug_class, kernel;
    bool equivalent = false;        ///< it is none: no law may see it
    std::vector<std::string> must;  ///< laws that its row names
    std::vector<LawOnBug> laws;     ///< those that apply
    std::int64_t seeds = 1;
    Told told = Told::not_asked;
    std::string says;
    PeerCount peers;
    double seconds = 0;

    const LawOnBug* quickest() const;  ///< of those that see it under every seed; null: none
    std::int64_t killers() const;
    /// What must not be: no law sees it, a law of its row does not, an equivalent is accused.
    std::string fault() const;
    /// No law of its row was tried, and none sees it: no fault where the laws are a selection.
    bool beyond() const;
};

/// A kernel that is right, as others see it.
struct RightAudit {
    std::string kernel;
    PeerCount peers;
};

struct AuditReport {
    std::string attest, catalogue;
    std::uint64_t seed = 1;
    std::int64_t cases = 0, cases_elsewhere = 0, cases_simulated = 0, seeds = 1;
    bool whole = false;  ///< the museum by all laws
    std::vector<BugAudit> bugs;
    std::vector<RightAudit> right;

    std::int64_t planted() const;  ///< bugs that are some
    std::int64_t caught() const;
    std::int64_t caught_by_peers(std::size_t rule) const;
    /// Laws that were tried and see none of these bugs.
    std::vector<std::string> idle_laws() const;
    /// `chosen`: the laws are a selection.
    bool faultless(bool chosen) const;
};

/// None where it was interrupted.
std::optional<BugAudit> audit(const kernel::Mutant& mutant, const AuditOptions& options);
RightAudit audit_right(const std::string& kernel, const AuditOptions& options);

/// audit.jsonl: the report's head, then a line a bug and a line a right kernel.
std::string audit_records(AuditReport report);
/// Strictly: BadInput "PATH:LINE:COLUMN: ...".
AuditReport read_audit(const std::string& path);

}  // namespace attest::ci
