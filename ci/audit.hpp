#pragma once
// Which law sees which planted bug, after how many cases, and what the diagnosis says; beside it
// what the rules of others see on random normal inputs of the same shapes.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ci/peer_rules.hpp"
#include "kernels/interface/mutant.hpp"

namespace attest::ci {

struct AuditOptions {
    std::vector<std::string> match;  ///< globs on laws; empty: all
    std::uint64_t seed = 1;
    std::int64_t cases = 120;  ///< a law and seed, at most
    std::int64_t seeds = 1;    ///< a law sees a bug that it sees under each of them
    std::int64_t peer_cases = 24;
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

struct BugAudit {
    const kernel::Mutant* mutant = nullptr;
    std::vector<LawOnBug> laws;  ///< those that apply
    std::int64_t seeds = 1;
    Told told = Told::not_asked;
    std::string says;
    std::array<std::int64_t, peer_rule_count> rejected_by_peers{};
    std::int64_t peer_cases = 0;
    double seconds = 0;

    const LawOnBug* quickest() const;  ///< of those that see it under every seed; null: none
    std::int64_t killers() const;
    /// Laws that its row names and that do not see it.
    std::vector<std::string> missed() const;
};

BugAudit audit(const kernel::Mutant& mutant, const AuditOptions& options);
/// The same of a kernel that is right.
BugAudit audit_peers(const std::string& kernel, const AuditOptions& options);

}  // namespace attest::ci
