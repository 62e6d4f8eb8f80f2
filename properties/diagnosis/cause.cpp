#include "properties/diagnosis/cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>

#include "properties/diagnosis/backward_coarser_step.hpp"
#include "properties/diagnosis/coarser_step.hpp"
#include "properties/diagnosis/cross_examination.hpp"
#include "properties/diagnosis/election.hpp"
#include "properties/diagnosis/lead.hpp"
#include "properties/law/property.hpp"
#include "properties/search/law_report.hpp"

namespace attest::diagnosis {

namespace {

// Deaths of one kind differ in offsets and addresses alone.
std::string without_numbers(std::string text) {
    for (std::size_t at = text.find("0x"); at != std::string::npos; at = text.find("0x", at))
        text.erase(at, text.find_first_not_of("0123456789abcdefx", at) - at);
    std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    return text;
}

// A stray access is told from others by what it did alone, and a lost GPU by that alone; any other
// death by all that is said of it.
std::string way_to_die(const CounterexampleReport& c) {
    if (c.example.outcome == worker::Outcome::hang) return "hang";
    if (c.example.outcome == worker::Outcome::memory) return "memory";
    if (const auto& fault = c.example.fault) {
        if (fault->stray == worker::Fault::Access::read) return "read";
        if (fault->stray == worker::Fault::Access::write) return "write";
        if (fault->kind == worker::Fault::Kind::context_lost) return "context lost";
    }
    return without_numbers(c.violation().problem);
}

// What makes counterexamples one cause. Those nothing explains are one as well, until something
// tells them apart: a kernel has one defect more often than thirty. But answers that are wrong by
// themselves are apart from those that are right.
struct Group {
    enum class Kind : std::uint8_t { death, deviation, earlier_calls, unexplained };
    Kind kind = Kind::unexplained;
    std::string which;
    auto operator<=>(const Group&) const = default;
};
const Group earlier_calls{Group::Kind::earlier_calls, ""};
const Group unexplained{Group::Kind::unexplained, ""};
const Group unexplained_backward{Group::Kind::unexplained, "backward"};

using Groups = std::map<Group, std::vector<std::size_t>>;

void join(Groups& groups, const Group& from, const Group& into) {
    auto members = groups.extract(from);
    auto& all = groups[into];
    all.insert(all.end(), members.mapped().begin(), members.mapped().end());
    std::sort(all.begin(), all.end());
}

Groups deaths_and_unexplained(const std::vector<CounterexampleReport>& counterexamples) {
    Groups groups;
    for (std::size_t n = 0; n < counterexamples.size(); ++n) {
        const CounterexampleReport& c = counterexamples[n];
        if (c.died())
            groups[{Group::Kind::death, way_to_die(c)}].push_back(n);
        else if (c.diagnosis.cases == 0)
            groups[earlier_calls].push_back(n);
        else if (!c.diagnosis.known)
            groups[c.diagnosis.backward ? unexplained_backward : unexplained].push_back(n);
    }
    return groups;
}

bool differentiates(const CounterexampleReport& c) {
    const law::Property* law = law::find_property(c.example.law);
    return law != nullptr && law->needs.backward;
}

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
// another by an experiment: what lies within its bounds elsewhere is put down to it.
void drop_steps_that_leave_something_open(std::vector<CounterexampleReport>& counterexamples) {
    const auto asked = [](const CounterexampleReport& c) {
        return !c.died() && c.diagnosis.cases > 0;
    };
    if (std::ranges::all_of(counterexamples,
                            [&](const CounterexampleReport& c) { return !asked(c) || by_step(c); }))
        return;
    const auto shown = std::ranges::find_if(counterexamples, [&](const CounterexampleReport& c) {
        return asked(c) && by_step(c) && c.diagnosis.id.starts_with("step_exp_");
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

// What agrees with a known defect of other counterexamples in too few elements to tell it from the
// truth is put down to it; so is what that defect predicts in part.
void join_what_fits(Groups& groups, std::vector<CounterexampleReport>& counterexamples) {
    const auto general = [&](const Group& group) {
        return counterexamples[groups[group].front()].diagnosis.general;
    };
    std::vector<Group> known, open;
    for (const auto& [group, members] : groups) {
        const bool named = group.kind == Group::Kind::deviation && !general(group);
        if (named) known.push_back(group);
        if (group == unexplained || (group.kind == Group::Kind::deviation && !named))
            open.push_back(group);
    }
    std::ranges::stable_sort(known, std::greater{},
                             [&](const Group& group) { return groups[group].size(); });
    const auto taken = [&](std::size_t n) {
        Diagnosis& d = counterexamples[n].diagnosis;
        for (const std::vector<Explanation>* list : {&d.also, &d.shared})
            for (const Group& group : known) {
                const auto fits = std::ranges::find(*list, group.which, &Explanation::id);
                if (fits == list->end()) continue;
                static_cast<Explanation&>(d) = Explanation(*fits);
                d.known = true;
                // Beside right answers that refute it here, it says no more than where it was
                // found.
                if (d.unlimited) d.says = counterexamples[groups[group].front()].diagnosis.says;
                groups[group].push_back(n);
                return true;
            }
        return false;
    };
    for (const Group& group : open) {
        std::erase_if(groups[group], taken);
        if (groups[group].empty()) groups.erase(group);
    }
    for (const Group& group : known) std::ranges::sort(groups[group]);
}

// Of a backward, what agrees with a known defect in too few elements to tell it from the truth is
// put down to it; so is a write or read elsewhere, where the defect is one of addresses.
void join_backward(Groups& groups, const std::vector<CounterexampleReport>& counterexamples) {
    std::vector<std::pair<Group, Explanation>> known;
    for (const auto& [group, members] : groups)
        if (group.kind == Group::Kind::deviation)
            known.emplace_back(group, counterexamples[members.front()].diagnosis);
    for (const auto& [into, defect] : known) {
        const bool backward = into.which.starts_with(of_backward);
        if (const auto open = groups.find(unexplained_backward); open != groups.end()) {
            const auto rest =
                std::ranges::stable_partition(open->second, [&, id = defect.id](std::size_t n) {
                    const Diagnosis& d = counterexamples[n].diagnosis;
                    return std::ranges::count(backward ? d.fits : d.fits_in_forward, id) == 0;
                });
            groups[into].insert(groups[into].end(), rest.begin(), rest.end());
            open->second.erase(rest.begin(), rest.end());
            if (open->second.empty()) groups.erase(open);
        }
        std::vector<Group> deaths;
        for (const auto& [group, members] : groups)
            if (defect.strays && group.kind == Group::Kind::death &&
                std::ranges::all_of(
                    members, [&](std::size_t n) { return differentiates(counterexamples[n]); }))
                deaths.push_back(group);
        for (const Group& death : deaths) join(groups, death, into);
        std::ranges::sort(groups[into]);
    }
}

// Where a kernel is shown to remember earlier calls, any answer of its may be wrong for that alone:
// a failure that nothing else explains is put down to it. And laws that fail on calls of their own
// making, where the case alone is right, add nothing to a single defect found otherwise.
void join_company(Groups& groups, const std::vector<CounterexampleReport>& counterexamples) {
    const auto found = groups.find(earlier_calls);
    if (found == groups.end()) return;
    const bool remembers = std::ranges::any_of(
        found->second, [&](std::size_t n) { return counterexamples[n].diagnosis.known; });
    if (remembers) {
        if (groups.contains(unexplained)) join(groups, unexplained, earlier_calls);
        return;
    }
    std::vector<Group> others;
    for (const auto& [group, members] : groups)
        if (group != earlier_calls && group.kind != Group::Kind::death) others.push_back(group);
    const auto known = [](const Group& group) { return group.kind == Group::Kind::deviation; };
    const auto size = [&groups](const Group& group) { return groups[group].size(); };
    // Beside what is not known, the one defect that is, where it breaks most laws.
    if (others.size() > 1 && std::ranges::count_if(others, known) == 1 &&
        known(*std::ranges::max_element(others, {}, size)))
        std::erase_if(others, std::not_fn(known));
    if (others.size() != 1) return;
    // A backward's defect breaks no law of forward; of what is not known nobody can tell.
    const bool backward = std::ranges::all_of(
        groups[others.front()], [&](std::size_t n) { return differentiates(counterexamples[n]); });
    const bool all = std::ranges::all_of(
        groups[earlier_calls], [&](std::size_t n) { return differentiates(counterexamples[n]); });
    if (!backward || all || !known(others.front())) join(groups, earlier_calls, others.front());
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

std::string capitalised(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
        text[0] = static_cast<char>(text[0] - 32);
    return text;
}

}  // namespace

std::vector<CauseReport> group_causes(std::vector<CounterexampleReport>& counterexamples) {
    drop_steps_that_leave_something_open(counterexamples);
    cross_examine(counterexamples);
    auto elected = elect_explanations(counterexamples);
    join_family(elected);
    Groups groups = deaths_and_unexplained(counterexamples);
    for (auto& [id, members] : elected) groups[{Group::Kind::deviation, id}] = std::move(members);
    join_what_fits(groups, counterexamples);
    join_backward(groups, counterexamples);
    // What is wrong in both passes and has no name in either is one defect more often than two.
    if (groups.contains(unexplained) && groups.contains(unexplained_backward))
        join(groups, unexplained_backward, unexplained);
    join_company(groups, counterexamples);

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

}  // namespace attest::diagnosis
