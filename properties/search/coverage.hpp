#pragma once
// Which features were drawn together, a format at a time: counts of every pair, and the pairs that
// cannot occur.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "properties/search/campaign.hpp"

namespace attest::search {

/// Of one format. A pair is two places in `features`, the larger first; its count is at
/// larger * (larger + 1) / 2 + smaller of `pairs`.
struct CoverageReport {
    using Pair = std::array<std::int64_t, 2>;
    Precision format = Precision::f32;  ///< of q
    std::int64_t cases = 0;
    std::vector<std::string> features;  ///< as the run that drew them calls them
    std::vector<std::int64_t> pairs;
    std::vector<Pair> impossible, undrawn, violated;
    std::int64_t allowed = 0;  ///< pairs that may be left undrawn
};

/// One report a format of the kernel. `kernel` is asked, with the plainest problem that has both
/// features, whether a pair can occur at all; a null one is not asked. `earlier` are the reports of
/// a run that is being resumed: their counts are added.
std::vector<CoverageReport> coverage_reports(const CampaignResult& result, std::int64_t allowed,
                                             Kernel* kernel,
                                             const std::vector<CoverageReport>& earlier);

/// Pairs drawn and possible, over all formats.
struct CoverageSummary {
    std::int64_t drawn = 0, possible = 0, undrawn = 0, allowed = 0;
    std::vector<Precision> formats;
    bool mixed = false;  ///< some cases had tensors of several formats
};
CoverageSummary summarise(const std::vector<CoverageReport>& coverage);

}  // namespace attest::search
