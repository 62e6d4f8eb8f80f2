#include "ci/run_report.hpp"

#include <algorithm>
#include <array>

#include "ci/number.hpp"

namespace attest {

std::string_view name(Border border) noexcept {
    constexpr std::array<std::string_view, 4> names = {"builtin", "c_abi", "python", "executable"};
    return names[static_cast<std::size_t>(border)];
}

std::string_view name(RunDecision decision) noexcept {
    constexpr std::array<std::string_view, 4> names = {"holds", "violated", "inconclusive",
                                                       "not_complete"};
    return names[static_cast<std::size_t>(decision)];
}

const LawReport* RunReport::law(std::string_view id) const {
    const auto at = std::ranges::find(laws, id, &LawReport::law);
    return at == laws.end() ? nullptr : &*at;
}

const CounterexampleReport* RunReport::counterexample(std::string_view id) const {
    const auto at = std::ranges::find_if(counterexamples, [&](const CounterexampleReport& c) {
        return short_id(c.example.id) == id;
    });
    return at == counterexamples.end() ? nullptr : &*at;
}

void RunReport::sort() {
    const auto place = [](const std::string& law) {
        const std::span<const Property> all = catalogue();
        return std::ranges::find(all, law, &Property::id) - all.begin();
    };
    std::ranges::stable_sort(laws, {}, [&](const LawReport& l) { return place(l.law); });
    std::ranges::stable_sort(counterexamples, {},
                             [&](const CounterexampleReport& c) { return place(c.example.law); });
    std::ranges::stable_sort(cases, {}, [&](const CaseReport& c) {
        return std::pair(place(c.law), std::max<std::int64_t>(0, c.tried.number));
    });
}

bool was_cut(const LawReport& law) {
    // What was left out on purpose says so: by the profile, or by --match.
    return law.verdict.decision == Decision::not_run && !law.verdict.reason.on_purpose();
}

RunVerdict verdict_of(const RunReport& report, bool interrupted) {
    RunVerdict sum;
    for (const LawReport& law : report.laws) {
        std::int64_t* const counts[] = {&sum.not_applicable, &sum.not_run, &sum.holds,
                                        &sum.inconclusive, &sum.violated};
        ++*counts[static_cast<std::size_t>(law.verdict.decision)];
        if (was_cut(law)) ++sum.cut;
        sum.cases += law.cases;
        sum.elements += law.verdict.elements;
        sum.discarded += law.discarded;
    }
    const CoverageSummary coverage = summarise(report.coverage);
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
        sum.reason = "no law applies to this kernel";
    } else if (report.run.whole && coverage.undrawn > coverage.allowed) {
        sum.decision = RunDecision::inconclusive;
        sum.reason = counted(coverage.undrawn, "feature pair") +
                     " never drawn, the profile allows " + count_text(coverage.allowed);
    } else {
        sum.decision = RunDecision::holds;
        sum.exit = exit_holds;
    }
    return sum;
}

}  // namespace attest
