// Asks a kernel about drawn cases, before the first one: what it refuses together.
#include <algorithm>
#include <map>

#include "properties/search/draw.hpp"

namespace attest::search {

namespace {

struct Refused {
    std::vector<Traits> problems;
    std::vector<std::string> reasons;  ///< of each
};

/// What was said most often of problems with this set and none of the others, which have reasons of
/// their own; of any with this set, where there are no such.
std::string reason_of(Traits set, const std::vector<Traits>& all, const Refused& refused) {
    std::map<std::string, std::int64_t> alone, any;
    for (std::size_t n = 0; n < refused.problems.size(); ++n) {
        const auto within = [&](Traits of) { return (refused.problems[n] & of) == of; };
        if (!within(set)) continue;
        ++any[refused.reasons[n]];
        if (std::ranges::count_if(all, within) == 1) ++alone[refused.reasons[n]];
    }
    const auto times = [](const auto& reason) { return reason.second; };
    return std::ranges::max_element(alone.empty() ? any : alone, {}, times)->first;
}

}  // namespace

std::vector<std::string> learn_refusals(Kernel& kernel, Capability& capability) {
    constexpr std::int64_t few = 256, many = 1024;  // many where some of the few are refused
    law::Property any;
    any.id = "any.case";
    const Profile profile;
    std::vector<Traits> accepted;
    Refused refused;
    for (std::int64_t n = 0; n < (refused.problems.empty() ? few : many); ++n) {
        const auto drawn = draw({any, capability, profile}, 0, n, 0);
        if (!drawn) continue;
        std::string reason;
        const bool taken = kernel.supports(drawn->problem, &reason);
        (taken ? accepted : refused.problems).push_back(traits_of(drawn->problem));
        if (!taken) refused.reasons.push_back(reason.empty() ? "" : " (" + reason + ")");
    }
    capability.refused_together = refused_together(accepted, refused.problems);
    std::vector<std::string> sentences;
    for (const Traits set : capability.refused_together) {
        const auto has_all = [set](Traits of) { return (of & set) == set; };
        const auto times = std::ranges::count_if(refused.problems, has_all);
        sentences.push_back("refuses " + said(set) +
                            reason_of(set, capability.refused_together, refused) +
                            ", whenever it was asked: " + std::to_string(times) + " times");
    }
    return sentences;
}

}  // namespace attest::search
