#pragma once
// The last record of a run: what needs the whole of it, also where it went on after a cut.

#include <optional>

#include "ci/run_report.hpp"
#include "properties/search/campaign.hpp"

namespace attest::ci {

/// `report` has all laws, of the earlier parts too; `earlier` is the end of the run that this one
/// goes on with, where that had one.
RunEnd end_of(const RunReport& report, const search::CampaignResult& result,
              const std::optional<RunEnd>& earlier);

}  // namespace attest::ci
