#pragma once
// The verdicts of a campaign, counted again from what came of each of its numbers: the slots of
// several shards, or those that a file holds. No kernel is asked. What a shard tried beyond what
// the whole would have is left out, so that the parts of a campaign come to what it would have come
// to in one.

#include <map>
#include <span>
#include <string>

#include "properties/search/coverage.hpp"

namespace attest::search {

/// By number; those below 0 are the cases known before, -1 the last of them.
using Slots = std::map<std::int64_t, SlotResult>;

/// What is known of one law that was run.
struct RecordedLaw {
    Slots slots;
    Sizes promised;
    std::optional<Counterexample> counterexample;  ///< of its first failure
};

struct RecountOptions {
    Profile profile;
    std::optional<std::int64_t> cases;  ///< a law, as the command asked
    Numbers numbers;                    ///< the shard's, or all
    bool narrow = false, all_cases = false;
    kernel::Manifest manifest = {};
};

/// Concludes law after law, in the catalogue's order: what one shows bears on the next.
class Recount {
public:
    explicit Recount(RecountOptions options) : options_(std::move(options)) {}

    /// BadInput where a number that the law must have is missing, or a violation has no
    /// counterexample.
    LawResult law(const law::Property& property, const RecordedLaw& recorded);

private:
    RecountOptions options_;
    Lessons lessons_;
};

/// The coverage of these cases; which pairs are impossible is taken from the records.
std::vector<CoverageReport> recounted_coverage(const CampaignResult& result,
                                               const std::vector<CoverageReport>& recorded);

}  // namespace attest::search
