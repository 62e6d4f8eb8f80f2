#include "ci/run_report.hpp"

#include <algorithm>
#include <array>

#include "ci/number.hpp"
#include "ci/run_words.hpp"
#include "properties/search/glob.hpp"

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

bool was_ended_early(const RunReport& report) {
    return report.end->interrupted || report.end->verdict.cut > 0 ||
           report.end->verdict.decision == RunDecision::not_complete;
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

// Why no law was judged.
std::string nothing_applies(const RunReport& report) {
    const search::LawReport* first = nullptr;
    std::int64_t asked = 0, left_out = 0;
    for (const search::LawReport& law : report.laws) {
        if (!search::selected(report.run.match, law.law)) continue;
        ++asked;
        if (law.verdict.reason.kind != law::Reason::Kind::not_in_profile) continue;
        if (left_out++ == 0) first = &law;
    }
    if (first == nullptr || left_out < asked)
        return "no law of those that were asked for, and are in the profile, applies to the kernel "
               "(attest describe KERNEL --laws says why)";
    return "profile " + report.run.profile.name + " leaves out " + first->law +
           (left_out > 1 ? " and " + counted(left_out - 1, "more law") + " that were asked for"
                         : ", which was asked for") +
           ": another profile (attest list profiles) has it, or one of your own";
}

/// "causal with lens_kv", of the first format with such a pair.
std::string first_undrawn(const std::vector<search::CoverageReport>& coverage) {
    for (const search::CoverageReport& of : coverage)
        if (!of.undrawn.empty()) {
            const auto& [a, b] = of.undrawn.front();
            return of.features[static_cast<std::size_t>(a)] + " with " +
                   of.features[static_cast<std::size_t>(b)];
        }
    return {};
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
        sum.reason = nothing_applies(report);
    } else if (report.run.whole && coverage.undrawn > coverage.allowed) {
        sum.decision = RunDecision::inconclusive;
        sum.reason = counted(coverage.undrawn, "feature pair") + " never drawn, as " +
                     first_undrawn(report.coverage) + "; the profile allows " +
                     count_text(coverage.allowed);
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

}  // namespace attest::ci
