#pragma once
// Which features were drawn together, a format at a time: counts of every pair, and the pairs that
// cannot occur.

#include <vector>

#include "ci/record.hpp"
#include "properties/search/campaign.hpp"

namespace attest {

/// One coverage record a format of the kernel. `kernel` is asked, with the plainest problem that
/// has both features, whether a pair can occur at all; a null one is not asked. `earlier` are the
/// records of a run that is being resumed: their counts are added.
std::vector<Record> coverage_records(const CampaignResult& result, std::int64_t allowed,
                                     Subject* kernel, const std::vector<Record>& earlier);

/// Pairs drawn and possible, over all formats.
struct CoverageSummary {
    std::int64_t drawn = 0, possible = 0, undrawn = 0, allowed = 0;
    std::vector<std::string> formats;
};
CoverageSummary summarise(const std::vector<Record>& coverage);

}  // namespace attest
