#pragma once
// What a run promises to try, and what it accepts; ci/profiles/*.json, as data.

#include <cstdint>
#include <string>
#include <vector>

#include "properties/search/glob.hpp"
#include "properties/search/sizes.hpp"

namespace attest::search {

struct Profile {
    std::string name;
    std::int64_t version = 1;
    std::int64_t cases_per_law = 120;  ///< budget where no time is given
    /// What most cases reach: a law's scores are these over its cost.
    std::int64_t scores_max = 16384, len_max = 256, dim_max = 256;
    /// What some case of every run reaches, one axis at a time and all else small, where a law and
    /// the kernel can follow: a run that did not is inconclusive.
    Sizes reach{{SizeAxis::batch, 33},   {SizeAxis::heads_q, 128},  {SizeAxis::heads_kv, 64},
                {SizeAxis::len_q, 6145}, {SizeAxis::len_kv, 98305}, {SizeAxis::dim_qk, 576},
                {SizeAxis::dim_v, 577},  {SizeAxis::documents, 33}};
    std::int64_t len_min = 1;  ///< above 1: long contexts; laws of any length draw len_kv from here
    std::vector<std::string> laws = {"*"};  ///< globs; a law outside them is not_run
    std::vector<std::string> laws_excluded;
    bool backward = false;  ///< a kernel without gradients has not been tried
    std::vector<std::string> fails = {"violation",
                                      "structure"};  ///< classes that make the verdict violated
    /// Shares of the cases and of the draws: a law that lost more has not been tried.
    double discard_max = 0.1, refuse_max = 0.75;
    std::int64_t undrawn_pairs_max = 4;

    bool has(std::string_view law) const noexcept {
        return matches_any(laws, law) && !matches_any(laws_excluded, law);
    }
};

}  // namespace attest::search
