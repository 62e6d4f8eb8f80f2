#include "properties/search/campaign.hpp"

#include "properties/search/runner.hpp"
#include "properties/search/session_subject.hpp"

namespace attest {

CampaignResult run_campaign(const CampaignOptions& options, CampaignObserver& observer) {
    const auto start = [&options]() -> std::unique_ptr<Subject> {
        return std::make_unique<SessionSubject>(options.kernel, options.session);
    };
    return run_laws(catalogue(), start, options, observer);
}

}  // namespace attest
