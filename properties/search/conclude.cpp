#include "properties/search/conclude.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace attest::search {

namespace {

std::string cases_text(std::int64_t cases) {
    return std::to_string(cases) + (cases == 1 ? " case" : " cases");
}

std::string percent(double share) {
    return std::to_string(std::llround(100 * share)) + " %";
}

/// Of a kernel that takes certain shapes alone: many a law changes a shape, and such a kernel takes
/// few of the changed ones.
constexpr double narrow_discard_max = 0.75;

law::Reason nothing_judged(const LawResult& law, const Effort& effort, const std::string& why) {
    if (effort.slots == 0) return {law::Reason::Kind::none_judged, "no case was tried"};
    std::string text = "none of " + cases_text(effort.slots) + " could be judged";
    if (law.refused > 0)
        text += "; the kernel refused " + std::to_string(law.refused) + " draws" +
                commonest(law.refusals);
    if (law.discarded > 0)
        text += "; " + std::to_string(law.discarded) +
                " draws were outside the law's precondition or left it nothing to compare";
    if (!why.empty()) text += " (" + why + ")";
    return {law::Reason::Kind::none_judged, std::move(text)};
}

/// Why what was judged is too little, if it is.
std::optional<law::Reason> too_little(const LawResult& law, const Profile& profile,
                                      const Effort& effort) {
    const auto share = [](std::int64_t part, std::int64_t whole) {
        return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
    };
    const double refused = share(law.refused, law.refused + law.cases);
    if (!(refused <= profile.refuse_max))
        return law::Reason(law::Reason::Kind::too_little,
                           "the kernel refused " + percent(refused) + " of the draws, " +
                               percent(profile.refuse_max) + " are allowed" +
                               commonest(law.refusals) + "; what takes says is not drawn");
    const double lost = share(effort.slots - law.cases, effort.slots);
    if (!(lost <= (effort.narrow ? narrow_discard_max : profile.discard_max)))
        return law::Reason(law::Reason::Kind::too_little,
                           "only " + std::to_string(law.cases) + " of " + cases_text(effort.slots) +
                               " could be judged; " + std::to_string(law.discarded) +
                               " draws left the law nothing to compare");
    if (effort.cut)
        return law::Reason(law::Reason::Kind::interrupted, std::string(effort.cut_by) + " after " +
                                                               std::to_string(law.cases) + " of " +
                                                               cases_text(effort.planned));
    return std::nullopt;
}

std::optional<Doubted> doubted_cases(const LawResult& law) {
    const CaseRecord* worst = nullptr;
    std::int64_t cases = 0;
    for (const CaseRecord& record : law.records) {
        const auto& doubt = record.verdict.doubt;
        if (!doubt) continue;
        ++cases;
        if (worst == nullptr || doubt->violation_class < worst->verdict.doubt->violation_class)
            worst = &record;
    }
    return worst == nullptr ? std::nullopt : std::optional(Doubted{cases, worst->tried});
}

/// Where the cases hold one by one, what they say together is told beside it.
void pool_cases(LawResult& law) {
    if (law.property == nullptr || law.property->pool == nullptr) return;
    if (law.verdict.statistic) law.verdict.statistic->pool.clear();  // of one case
    law::Samples all;
    for (const CaseRecord& record : law.records) {
        // Cases known before were chosen by what the kernel answered.
        if (!record.verdict.statistic || record.number < 0) continue;
        const law::Samples& own = record.verdict.statistic->pool;
        all.resize(std::max(all.size(), own.size()));
        for (std::size_t k = 0; k < own.size(); ++k) all[k].add(own[k]);
    }
    if (all.empty()) return;
    law::Pooled pooled = law.property->pool(all);
    law.verdict.pooled = std::move(pooled.statistic);
    if (law.verdict.decision == law::Decision::holds && !law.verdict.doubt)
        law.verdict.doubt = std::move(pooled.doubt);
}

}  // namespace

std::string commonest(const std::map<std::string, std::int64_t>& refusals) {
    const auto most =
        std::max_element(refusals.begin(), refusals.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == refusals.end() || most->first.empty() ? "" : ", mostly: " + most->first;
}

void conclude(LawResult& law, const Profile& profile, const Effort& effort) {
    const law::Verdict nothing = std::exchange(law.verdict, {});
    law.violated = 0;
    if (law.records.empty() && effort.slots > 0 && law.refused == 0 &&
        nothing.reason.kind != law::Reason::Kind::none &&
        nothing.decision == law::Decision::not_applicable) {
        // The law itself said so of every case: that is an answer about the kernel.
        law.verdict = nothing;
        return;
    }
    if (law.records.empty()) {
        const bool takes_none =
            !effort.cut && effort.slots > 0 && (law.refused > 0 || effort.narrow);
        law::Reason reason = nothing_judged(law, effort, nothing.reason.text);
        law.verdict = takes_none ? law::not_applicable(std::move(reason))
                                 : law::inconclusive(std::move(reason));
        if (effort.slots == 0 && effort.cut)
            law.verdict =
                law::not_run(law::Reason(law::Reason::Kind::interrupted,
                                         std::string(effort.cut_by) + " before its first case"));
        return;
    }
    law::Verdict merged = law.records.front().verdict;
    for (std::size_t i = 1; i < law.records.size(); ++i)
        merged = merge(std::move(merged), law.records[i].verdict);
    for (const CaseRecord& record : law.records)
        law.violated += record.verdict.decision == law::Decision::violated;
    if (merged.decision == law::Decision::holds) {
        if (std::optional<law::Reason> reason = too_little(law, profile, effort)) {
            const bool few = effort.narrow && !effort.cut && law.refused <= law.discarded;
            merged.decision = few ? law::Decision::not_applicable : law::Decision::inconclusive;
            merged.reason = std::move(*reason);
        }
    }
    law.verdict = std::move(merged);
    law.doubted = doubted_cases(law);
    pool_cases(law);
}

void settle(LawResult& law, Counterexample counterexample) {
    if (counterexample.confirmed.how == Confirmation::flaky) {
        law.verdict.decision = law::Decision::inconclusive;
        law.verdict.reason = {
            law::Reason::Kind::flaky,
            "failed " + std::to_string(law.violated) + " of " + cases_text(law.cases) + ", 0 of " +
                std::to_string(counterexample.confirmed.alone.of) + " replays in fresh processes"};
    }
    law.counterexample = std::move(counterexample);
}

void withdraw(LawResult& law, FailureKind kind, const Profile& profile, const Effort& effort) {
    for (CaseRecord& record : law.records)
        if (failure_kind(record) == kind) {
            record.verdict = law::inconclusive(law::Reason(law::Reason::Kind::slow_once));
            record.outcome = worker::Outcome::ok;
            record.fault.reset();
        }
    conclude(law, profile, effort);
}

}  // namespace attest::search
