// Asks a kernel about drawn cases, before the first one: what it refuses together.
#include <algorithm>

#include "properties/search/draw.hpp"

namespace attest::search {

std::vector<std::string> learn_refusals(Kernel& kernel, Capability& capability) {
    constexpr std::int64_t few = 256, many = 1024;  // many where some of the few are refused
    law::Property any;
    any.id = "any.case";
    const Profile profile;
    std::vector<Traits> accepted, refused;
    std::vector<std::string> reasons;
    for (std::int64_t n = 0; n < (refused.empty() ? few : many); ++n) {
        const auto drawn = draw({any, capability, profile}, 0, n, 0);
        if (!drawn) continue;
        std::string reason;
        const bool taken = kernel.supports(drawn->problem, &reason);
        (taken ? accepted : refused).push_back(traits_of(drawn->problem));
        if (!taken) reasons.push_back(reason.empty() ? "" : " (" + reason + ")");
    }
    capability.refused_together = refused_together(accepted, refused);
    std::vector<std::string> sentences;
    for (const Traits set : capability.refused_together) {
        const auto has_all = [set](Traits of) { return (of & set) == set; };
        const auto first = std::find_if(refused.begin(), refused.end(), has_all);
        const auto times = std::count_if(refused.begin(), refused.end(), has_all);
        sentences.push_back("refuses " + said(set) +
                            reasons[static_cast<std::size_t>(first - refused.begin())] +
                            ", whenever it was asked: " + std::to_string(times) + " times");
    }
    return sentences;
}

}  // namespace attest::search
