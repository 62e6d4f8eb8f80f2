#include "properties/search/campaign.hpp"

#include "properties/search/runner.hpp"
#include "properties/search/session_kernel.hpp"

namespace attest::search {

CampaignResult run_campaign(const CampaignOptions& options, CampaignObserver& observer) {
    const auto start = [&options]() -> std::unique_ptr<Kernel> {
        return std::make_unique<SessionKernel>(options.kernel, options.session);
    };
    return run_laws(law::catalogue(), start, options, observer);
}

}  // namespace attest::search
