#include "ci/run_report.hpp"

#include <algorithm>
#include <array>

#include "ci/number.hpp"
#include "kernels/worker/confinement.hpp"
#include "properties/search/campaign.hpp"
#include "properties/search/capability.hpp"

namespace attest::ci {

std::string_view name(kernel::KernelInterface interface) noexcept {
    constexpr std::array<std::string_view, 4> names = {"builtin", "c_abi", "python", "executable"};
    return names[static_cast<std::size_t>(interface)];
}

std::string_view name(RunDecision decision) noexcept {
    constexpr std::array<std::string_view, 4> names = {"holds", "violated", "inconclusive",
                                                       "not_complete"};
    return names[static_cast<std::size_t>(decision)];
}

const search::LawReport* RunReport::law(std::string_view id) const {
    const auto at = std::ranges::find(laws, id, &search::LawReport::law);
    return at == laws.end() ? nullptr : &*at;
}

const diagnosis::CounterexampleReport* RunReport::counterexample(std::string_view id) const {
    const auto at =
        std::ranges::find_if(counterexamples, [&](const diagnosis::CounterexampleReport& c) {
            return search::short_id(c.example.id) == id;
        });
    return at == counterexamples.end() ? nullptr : &*at;
}

void RunReport::sort() {
    const auto place = [](const std::string& law) {
        const std::span<const law::Property> all = law::catalogue();
        return std::ranges::find(all, law, &law::Property::id) - all.begin();
    };
    std::ranges::stable_sort(laws, {}, [&](const search::LawReport& l) { return place(l.law); });
    std::ranges::stable_sort(counterexamples, {}, [&](const diagnosis::CounterexampleReport& c) {
        return place(c.example.law);
    });
    std::ranges::stable_sort(cases, {}, [&](const search::CaseReport& c) {
        return std::pair(place(c.law), c.record.number);
    });
    std::ranges::stable_sort(
        draws, {}, [&](const search::DrawReport& d) { return std::pair(place(d.law), d.number); });
}

bool was_cut(const search::LawReport& law) {
    // What was left out on purpose says so: by the profile, or by --match.
    return law.verdict.decision == law::Decision::not_run && !law.verdict.reason.on_purpose();
}

SizeReport sizes_of(const RunReport& report) {
    SizeReport sizes;
    for (const search::LawReport& law : report.laws) {
        sizes.judged.cover(law.largest);
        sizes.promised.cover(law.promised);
    }
    return sizes;
}

double chance_of(const RunReport& report) {
    double sum = 0;
    for (const search::LawReport& law : report.laws)
        if (const auto& statistic = law.verdict.statistic)
            sum += static_cast<double>(law.cases) * statistic->false_positive_rate +
                   (law.verdict.pooled ? law.verdict.pooled->false_positive_rate : 0);
    return std::min(1.0, sum);
}

std::string chance_text(const RunReport& report) {
    const double chance = chance_of(report);
    if (chance == 0) return {};
    return "statistics accuse or suspect a correct kernel in at most " + bound_text(chance) +
           " of such runs";
}

std::string unjudged(const RunReport& report) {
    const auto of_backward = [](const search::LawReport& law) {
        const law::Property* property = law::find_property(law.law);
        return property != nullptr && property->needs.backward && law.cases > 0;
    };
    const bool judged = std::ranges::any_of(report.laws, of_backward);
    const auto of_dropout = [](const search::LawReport& law) {
        const law::Property* property = law::find_property(law.law);
        return property != nullptr && property->cases.require.has(Feature::dropout) &&
               law.cases > 0;
    };
    const bool dropout = report.run.kernel.manifest.features.has(Feature::dropout) &&
                         std::ranges::none_of(report.laws, of_dropout);
    return std::string(judged ? "append" : "backward, append") + (dropout ? ", dropout" : "");
}

std::string sizes_text(const search::Sizes& sizes) {
    std::string text;
    for (int n = 0; n < search::size_axis_count; ++n) {
        const auto axis = static_cast<search::SizeAxis>(n);
        if (sizes[axis] == 0) continue;
        text.append(text.empty() ? "" : ", ").append(search::short_name(axis));
        text += " " + count_text(sizes[axis]);
    }
    return text;
}

namespace {

/// What of the promised sizes was not judged.
search::Sizes missed(const SizeReport& sizes) {
    search::Sizes none;
    for (int n = 0; n < search::size_axis_count; ++n) {
        const auto axis = static_cast<search::SizeAxis>(n);
        if (sizes.judged[axis] < sizes.promised[axis]) none[axis] = sizes.promised[axis];
    }
    return none;
}

}  // namespace

RunVerdict verdict_of(const RunReport& report, bool interrupted) {
    RunVerdict sum;
    for (const search::LawReport& law : report.laws) {
        std::int64_t* const counts[] = {&sum.not_applicable, &sum.not_run, &sum.holds,
                                        &sum.inconclusive, &sum.violated};
        ++*counts[static_cast<std::size_t>(law.verdict.decision)];
        if (was_cut(law)) ++sum.cut;
        sum.cases += law.cases;
        sum.elements += law.verdict.elements;
        sum.discarded += law.discarded;
    }
    const search::CoverageSummary coverage = search::summarise(report.coverage);
    sum.exit = exit_inconclusive;
    if (sum.violated > 0) {
        sum.decision = RunDecision::violated;
        sum.exit = exit_violated;
    } else if (interrupted || sum.cut > 0) {
        sum.decision = RunDecision::not_complete;
    } else if (sum.inconclusive > 0) {
        sum.decision = RunDecision::inconclusive;
    } else if (sum.holds == 0) {
        sum.decision = RunDecision::inconclusive;
        sum.reason =
            "no law of those that were asked for, and are in the profile, applies to the kernel";
    } else if (report.run.whole && coverage.undrawn > coverage.allowed) {
        sum.decision = RunDecision::inconclusive;
        sum.reason = counted(coverage.undrawn, "feature pair") +
                     " never drawn, the profile allows " + count_text(coverage.allowed);
    } else if (const search::Sizes none = missed(sizes_of(report));
               report.run.whole && !none.empty()) {
        sum.decision = RunDecision::inconclusive;
        sum.reason =
            "of the sizes that the profile promises these were never judged: " + sizes_text(none);
    } else {
        sum.decision = RunDecision::holds;
        sum.exit = exit_holds;
    }
    return sum;
}

std::string absent_barriers(const KernelReport& kernel) {
    const bool asked = std::ranges::find(kernel.options, "--unconfined") != kernel.options.end();
    // Earlier records say nothing of it.
    if (kernel.interface == kernel::KernelInterface::builtin || (kernel.barriers.empty() && !asked))
        return {};
    std::string names;
    for (const std::string_view barrier : worker::barrier_names)
        if (std::ranges::find(kernel.barriers, barrier) == kernel.barriers.end())
            names.append(names.empty() ? "" : ", ").append(barrier);
    return names;
}

std::string skipped_text(const RunVerdict& v) {
    std::string text =
        v.not_applicable == 0 ? "no law" : counted(v.not_applicable, "law") + " not applicable";
    if (v.not_run > v.cut) text += ", " + counted(v.not_run - v.cut, "law") + " left out";
    if (v.cases + v.discarded > 0)
        text += "; " +
                share_text(static_cast<double>(v.discarded) /
                           static_cast<double>(v.cases + v.discarded)) +
                " of draws redrawn";
    return text;
}

std::string shard_text(const RunHeader& run) {
    return std::to_string(run.shard_index) + "/" + std::to_string(run.shard_count);
}

std::map<std::string, std::int64_t> refusals_of(const RunReport& report) {
    std::map<std::string, std::int64_t> sum;
    for (const search::LawReport& law : report.laws)
        for (const auto& [reason, count] : law.refusals) sum[reason] += count;
    return sum;
}

std::string refused_text(const RunReport& report) {
    std::int64_t refused = 0, judged = 0;
    for (const search::LawReport& law : report.laws) {
        judged += law.cases;
        refused += law.refused;
    }
    if (refused == 0) return {};
    return share_text(static_cast<double>(refused) / static_cast<double>(refused + judged)) +
           " of the draws, by the kernel" + search::commonest(refusals_of(report));
}

std::string fewer_cases_text(const RunReport& report) {
    const auto first = std::ranges::find_if(report.laws, [](const search::LawReport& law) {
        return law.verdict.decision == law::Decision::violated ||
               law.verdict.reason.kind == law::Reason::Kind::flaky;
    });
    const std::int64_t all = report.run.profile.cases_per_law;
    const std::int64_t few = search::cases_afforded(all, report.run.kernel.manifest.takes);
    const auto whole = [](const search::LawReport& law) {
        return law.cases > search::cases_once_violated;
    };
    const bool cut = first != report.laws.end() && search::cases_once_violated < few &&
                     std::none_of(first + 1, report.laws.end(), whole);
    if (report.run.cases || report.run.seconds || (!cut && few == all)) return {};
    const std::string tries_all = "; --cases " + std::to_string(all) + " tries all";
    if (!cut)
        return "at most " + count_text(few) +
               " cases of each law: the smallest problem that the kernel takes is large" +
               tries_all;
    return "at most " + count_text(search::cases_once_violated) + " cases of each law after " +
           first->law + ", which failed" + tries_all;
}

}  // namespace attest::ci
