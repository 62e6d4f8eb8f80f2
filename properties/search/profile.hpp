#pragma once
// What a run promises to try, and what it accepts; ci/profiles/*.json, as data.

#include <cstdint>
#include <string>
#include <vector>

namespace attest::search {

struct Profile {
    std::string name;
    std::int64_t version = 1;
    std::int64_t cases_per_law = 120;  ///< budget where no time is given
    std::int64_t scores_max = 16384, len_max = 256, dim_max = 128;
    std::int64_t len_min = 1;  ///< above 1: long contexts; laws of any length draw len_kv from here
    std::vector<std::string> laws = {"*"};  ///< globs; a law outside them is not_run
    std::vector<std::string> laws_excluded;
    std::vector<std::string> fails = {"violation",
                                      "structure"};  ///< classes that make the verdict violated
    /// Shares of the cases and of the draws: a law that lost more has not been tried.
    double discard_max = 0.1, refuse_max = 0.25;
    std::int64_t undrawn_pairs_max = 4;
};

}  // namespace attest::search
