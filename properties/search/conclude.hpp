#pragma once
// From the records of a law to its verdict.

#include "properties/search/campaign.hpp"

namespace attest {

/// How the records came about, as far as the verdict needs it.
struct Effort {
    std::int64_t slots = 0;     ///< case numbers tried, also those that led to no case
    std::int64_t planned = 0;   ///< how many there were to try
    bool cut = false;           ///< ended by an interruption
    bool narrow = false;        ///< the kernel takes certain shapes alone
    bool contradicted = false;  ///< it declares a feature the law needs, and refuses it
};

/// Merges the records in order and counts the violations. What checked nothing, or less than the
/// profile asks for, is inconclusive, with the numbers; but where the kernel takes none of the
/// law's cases and has not declared otherwise, the law does not apply.
void conclude(LawResult& law, const Profile& profile, const Effort& effort);

}  // namespace attest
