#pragma once
// Runs the laws of a campaign on several threads, each with a kernel of its own, and shrinks what
// fails. run_campaign() is this with the catalogue and a worker process; tests bring their own laws
// and kernels.

#include <span>

#include "properties/search/campaign.hpp"
#include "properties/search/kernel.hpp"

namespace attest::search {

/// Throws what the factory throws where no kernel could be started; what happens after that ends
/// the campaign, and is in its result. `laws` must outlive the result, which points into it.
CampaignResult run_laws(std::span<const law::Property> laws, const KernelFactory& factory,
                        const CampaignOptions& options, CampaignObserver& observer);

}  // namespace attest::search
