#pragma once
// Counts of weights that were kept, dropped or alike, against the chance that each had: with a
// false-positive rate that is a theorem.

#include <cstdint>
#include <string>
#include <vector>

#include "properties/law/verdict.hpp"

namespace attest::law {

/// What a correct kernel's case is accused for at most, by each law of this kind.
inline constexpr double kept_rate = 1e-9;

/// `hits` of `of` independent cells, each with the same chance.
struct KeptCount {
    std::string what;  ///< "weights dropped"
    double chance = 0;
    std::int64_t of = 0, hits = 0;

    void add(bool hit) noexcept {
        ++of;
        hits += hit ? 1 : 0;
    }
    /// n KL(hits/n || chance), which exceeds t with a chance of at most 2 exp(-t): Chernoff's bound
    /// of either tail (Hoeffding 1963, theorem 1).
    double surprise() const noexcept;
};

/// Violated by the first whose surprise is beyond what all of them together leave to chance.
Judgement judge_counts(const std::vector<KeptCount>& counts);

}  // namespace attest::law
