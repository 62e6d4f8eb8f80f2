#include "properties/diagnosis/cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

constexpr std::string_view of_partials = "step_partials_";

/// Outputs of splits that are rounded look in single calls like sums that are.
bool is_like(const std::string& step, const std::string& id) {
    if (!step.starts_with(of_partials)) return id == step;
    const std::string format = step.substr(of_partials.size());
    return id == step || id == "step_accumulate_" + format ||
           id.starts_with("value_sum_rounded_" + format) ||
           id.starts_with("split_outputs_rounded_" + format);
}

bool admits(const CounterexampleReport& c, const std::string& step) {
    const Diagnosis& d = c.diagnosis;
    return d.known ? is_like(step, d.id) : std::ranges::count(d.fits, step) > 0;
}

// An arithmetic coarser than declared shows in every law that is broken, or it is not that: its
// bounds are wide, and a single case of one law lies within them by chance. An exp is shown to be
// another by an experiment, outputs of splits by one and most of the laws, sums of gradients by
// most of the laws: what lies within their bounds elsewhere is put down to them.
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
               (id.starts_with("step_exp_") ||
                ((is_backward_coarser_step(id) || id.starts_with(of_partials)) && by_most(id)));
    });
    if (shown != counterexamples.end() &&
        std::ranges::all_of(counterexamples, [&](const CounterexampleReport& c) {
            return !asked(c) || admits(c, shown->diagnosis.id);
        })) {
        const Explanation step = shown->diagnosis;
        for (CounterexampleReport& c : counterexamples) {
            if (!asked(c) || c.diagnosis.id == step.id) continue;
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

// Forms of one defect are one, under the name that most have: splits that are asked for and those
// of the kernel's own accord.
void join_forms(std::map<std::string, std::vector<std::size_t>>& elected,
                const std::vector<CounterexampleReport>& counterexamples) {
    std::map<std::string, std::vector<std::string>> forms;
    for (const auto& [which, members] : elected) {
        const Diagnosis& d = counterexamples[members.front()].diagnosis;
        const bool backward = which.starts_with(of_backward);
        forms[(backward ? of_backward : "") + defect_of(d)].push_back(which);
    }
    for (const auto& [defect, ids] : forms) {
        const auto into = std::ranges::max_element(
            ids, {}, [&](const std::string& which) { return elected[which].size(); });
        std::vector<std::size_t>& all = elected[*into];
        for (const std::string& which : ids) {
            if (which == *into) continue;
            std::ranges::copy(elected[which], std::back_inserter(all));
            elected.erase(which);
        }
        std::ranges::sort(all);
    }
}

/// Nothing but one call bears its diagnosis out.
bool failed_once(const CounterexampleReport& c) {
    return c.example.confirmed.alone.of <= 1 && c.diagnosis.cases <= 1;
}

// What was right on one processor, and wrong on several, depends on them; beside it so does what
// looks like a memory of earlier calls, and what fails now and then, whatever its calls look like.
void tell_schedule(std::vector<CounterexampleReport>& counterexamples) {
    const auto by_schedule = [](const CounterexampleReport& c) {
        return c.example.confirmed.how == search::Confirmation::schedule;
    };
    if (std::ranges::none_of(counterexamples, by_schedule)) return;
    for (CounterexampleReport& c : counterexamples) {
        Diagnosis& d = c.diagnosis;
        if (c.died() || !(failed_now_and_then(c.example.confirmed) || failed_once(c) ||
                          (d.known && d.cases == 0)))
            continue;
        if (d.cases > 0) d = {};
        static_cast<Explanation&>(d) = remembered();
        d.known = true;
        d.says = "an answer that depends on the thread schedule; by itself each may be right";
    }
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
    join_forms(elected, counterexamples);
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
            if (counterexamples[n].diagnosis.in_place_alone)
                cause.other_numbers.push_back(counterexamples[n].example.law);
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
        Boundary pooled = find_boundary(records, &c.example.smallest);
        for (const CounterexampleReport& other : counterexamples) {
            if (other.cause != cause->id) continue;
            pooled.hear(other.example.smallest.problem);
            if (other.diagnosis.evidence)
                for (const Evidence& e : other.diagnosis.evidence->wrong)
                    pooled.hear(e.asked.problem);
        }
        if (pooled.found) c.boundary = std::move(pooled);
    }
}

}  // namespace attest::diagnosis
