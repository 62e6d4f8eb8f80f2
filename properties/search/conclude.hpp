#pragma once
// From the records of a law to its verdict.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "properties/search/counterexample.hpp"
#include "properties/search/profile.hpp"
#include "properties/search/sizes.hpp"

namespace attest::search {

/// The cases in which a law found what does not fail here (Verdict::doubt), by the worst of these.
struct Doubted {
    std::int64_t cases = 0;
    Case first;
};

/// What the cases of one law came to. cases: judged. discarded: draws outside the law's
/// precondition, or in which it found nothing to compare. refused: draws the kernel said no to;
/// refusals counts its reasons. Both are drawn again under the same number, so they are not lost
/// cases.
struct LawTotals {
    law::Verdict verdict;  ///< merged
    std::int64_t cases = 0, discarded = 0, refused = 0, violated = 0;
    double seconds = 0;
    std::map<std::string, std::int64_t> refusals;
    std::optional<Doubted> doubted;  ///< none also of a doubt that all cases together cast
    /// Along each axis, each for itself: what its cases had, and what the profile promised of those
    /// it and the kernel can follow.
    Sizes largest, promised;
};

struct LawResult : LawTotals {
    const law::Property* property = nullptr;
    std::vector<CaseRecord> records;  ///< the judged cases, in case order
    std::optional<Counterexample> counterexample;
};

/// How the records came about, as far as the verdict needs it.
struct Effort {
    std::int64_t slots = 0;    ///< case numbers tried, also those that led to no case
    std::int64_t planned = 0;  ///< how many there were to try
    bool cut = false;          ///< ended before its time
    std::string_view cut_by = "interrupted";  ///< in words, of what was cut
    bool narrow = false;  ///< the kernel takes certain shapes alone, or shows little
};

/// ", mostly: " and the commonest reason a kernel gave; empty where it gave none.
std::string commonest(const std::map<std::string, std::int64_t>& refusals);

/// Merges the records in order and counts the violations. What checked nothing, or less than the
/// profile asks for, is inconclusive, with the numbers; but where the kernel takes none of the
/// law's cases, the law does not apply.
void conclude(LawResult& law, const Profile& profile, const Effort& effort);

/// The counterexample is the law's; one that was not seen again leaves the law undecided.
void settle(LawResult& law, Counterexample counterexample);

/// Failures of this kind were none: a longer wait showed it. The law is concluded without them.
void withdraw(LawResult& law, FailureKind kind, const Profile& profile, const Effort& effort);

}  // namespace attest::search
