#include "properties/diagnosis/cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "properties/diagnosis/backward_coarser_step.hpp"
#include "properties/diagnosis/cause_groups.hpp"
#include "properties/diagnosis/coarser_step.hpp"
#include "properties/diagnosis/cross_examination.hpp"
#include "properties/diagnosis/election.hpp"
#include "properties/diagnosis/lead.hpp"
#include "properties/search/law_report.hpp"

namespace attest::diagnosis {

namespace {

bool by_step(const CounterexampleReport& c) {
    return c.diagnosis.known &&
           (is_coarser_step(c.diagnosis.id) || is_backward_coarser_step(c.diagnosis.id));
}

bool admits(const CounterexampleReport& c, const std::string& step) {
    const Diagnosis& d = c.diagnosis;
    return d.known ? d.id == step : std::ranges::count(d.fits, step) > 0;
}

// An arithmetic coarser than declared shows in every law that is broken, or it is not that: its
// bounds are wide, and a single case of one law lies within them by chance. An exp is shown to be
// another by an experiment, and sums of gradients by most of the laws: what lies within their
// bounds elsewhere is put down to them.
void drop_steps_that_leave_something_open(std::vector<CounterexampleReport>& counterexamples) {
    const auto asked = [](const CounterexampleReport& c) {
        return !c.died() && c.diagnosis.cases > 0;
    };
    if (std::ranges::all_of(counterexamples,
                            [&](const CounterexampleReport& c) { return !asked(c) || by_step(c); }))
        return;
    const auto by_most = [&](const std::string& id) {
        return 2 * std::ranges::count_if(
                       counterexamples,
                       [&](const auto& c) { return c.diagnosis.known && c.diagnosis.id == id; }) >
               std::ranges::count_if(counterexamples, asked);
    };
    const auto shown = std::ranges::find_if(counterexamples, [&](const CounterexampleReport& c) {
        const std::string& id = c.diagnosis.id;
        return asked(c) && by_step(c) &&
               (id.starts_with("step_exp_") || (is_backward_coarser_step(id) && by_most(id)));
    });
    if (shown != counterexamples.end() &&
        std::ranges::all_of(counterexamples, [&](const CounterexampleReport& c) {
            return !asked(c) || admits(c, shown->diagnosis.id);
        })) {
        const Explanation step = shown->diagnosis;
        for (CounterexampleReport& c : counterexamples) {
            if (!asked(c) || c.diagnosis.known) continue;
            static_cast<Explanation&>(c.diagnosis) = step;
            c.diagnosis.known = true;
        }
        return;
    }
    for (CounterexampleReport& c : counterexamples)
        if (asked(c) && by_step(c)) {
            static_cast<Explanation&>(c.diagnosis) = {};
            c.diagnosis.known = false;
        }
}

// Where a maximum starts too high, weights in f16 lose their bits where those in f32 vanish.
constexpr std::string_view one_defect = "maximum_finite";

void join_family(std::map<std::string, std::vector<std::size_t>>& elected) {
    const auto own = [](const auto& entry) { return entry.first.starts_with(one_defect); };
    const auto into = std::ranges::find_if(elected, own);
    if (into == elected.end()) return;
    std::vector<std::size_t> all;
    for (const auto& entry : elected)
        if (own(entry)) all.insert(all.end(), entry.second.begin(), entry.second.end());
    std::ranges::sort(all);
    const std::string id = into->first;
    std::erase_if(elected, own);
    elected[id] = std::move(all);
}

// The same defect in splits that are asked for and in those of the kernel's own accord.
void join_own_splits(std::map<std::string, std::vector<std::size_t>>& elected) {
    for (auto own = elected.begin(); own != elected.end();) {
        const auto at = own->first.find("_own_");
        const auto asked =
            at == own->first.npos ? elected.end() : elected.find(own->first.substr(0, at));
        if (asked == elected.end()) {
            ++own;
            continue;
        }
        std::vector<std::size_t>& all = asked->second;
        all.insert(all.end(), own->second.begin(), own->second.end());
        std::ranges::sort(all);
        own = elected.erase(own);
    }
}

// What was right on one processor, and wrong on several, depends on them: what looks like a memory
// of earlier calls beside it is that.
void tell_schedule(std::vector<CounterexampleReport>& counterexamples) {
    if (std::ranges::none_of(counterexamples, [](const CounterexampleReport& c) {
            return c.example.confirmed.how == search::Confirmation::schedule;
        }))
        return;
    for (CounterexampleReport& c : counterexamples)
        if (!c.died() && c.diagnosis.known && c.diagnosis.cases == 0)
            c.diagnosis.says =
                "an answer that depends on the thread schedule; by itself each may be right";
}

std::string capitalised(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
        text[0] = static_cast<char>(text[0] - 32);
    return text;
}

}  // namespace

std::vector<CauseReport> group_causes(std::vector<CounterexampleReport>& counterexamples) {
    tell_schedule(counterexamples);
    drop_steps_that_leave_something_open(counterexamples);
    cross_examine(counterexamples);
    auto elected = elect_explanations(counterexamples);
    join_family(elected);
    join_own_splits(elected);
    Groups groups = deaths_and_unexplained(counterexamples);
    for (auto& [id, members] : elected) groups[{Group::Kind::deviation, id}] = std::move(members);
    join_groups(groups, counterexamples);

    std::vector<std::vector<std::size_t>> ordered;
    for (auto& [at, members] : groups) ordered.push_back(std::move(members));
    const auto any_known = [&](const std::vector<std::size_t>& members) {
        return std::any_of(members.begin(), members.end(),
                           [&](std::size_t n) { return counterexamples[n].diagnosis.known; });
    };
    std::stable_sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
        return std::tuple(b.size(), !any_known(a), a[0]) <
               std::tuple(a.size(), !any_known(b), b[0]);
    });
    std::vector<CauseReport> causes;
    for (const std::vector<std::size_t>& members : ordered) {
        const CounterexampleReport& lead = counterexamples[lead_of(members, counterexamples)];
        CauseReport cause{fmt::format("c{}", causes.size() + 1),
                          capitalised(lead.violation().problem),
                          search::short_id(lead.example.id),
                          {},
                          lead.diagnosis.known};
        for (const std::size_t n : members) {
            counterexamples[n].cause = cause.id;
            cause.laws.push_back(counterexamples[n].example.law);
        }
        causes.push_back(std::move(cause));
    }
    return causes;
}

void tell_boundaries(const std::vector<CauseReport>& causes,
                     std::vector<CounterexampleReport>& counterexamples,
                     const std::vector<const search::LawResult*>& laws) {
    for (CounterexampleReport& c : counterexamples) {
        const auto of_lead = [&c](const CauseReport& cause) {
            return cause.lead == search::short_id(c.example.id);
        };
        const auto cause = std::ranges::find_if(causes, of_lead);
        if (cause == causes.end() || c.boundary.found || cause->laws.size() < 2) continue;
        std::vector<const std::vector<search::CaseRecord>*> records;
        for (const search::LawResult* law : laws) {
            const std::string& id = law->property->id;
            if (std::ranges::find(cause->laws, id) == cause->laws.end()) continue;
            records.insert(id == c.example.law ? records.begin() : records.end(), &law->records);
        }
        if (records.size() < 2) continue;
        if (Boundary pooled = find_boundary(records, &c.example.smallest); pooled.found)
            c.boundary = std::move(pooled);
    }
}

}  // namespace attest::diagnosis
