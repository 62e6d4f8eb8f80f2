#include "properties/diagnosis/cause_groups.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "properties/diagnosis/address_groups.hpp"
#include "properties/diagnosis/election.hpp"
#include "properties/diagnosis/same_places.hpp"
#include "properties/law/property.hpp"
#include "reference/problem/feature.hpp"

namespace attest::diagnosis {

namespace {

// Deaths of one kind differ in offsets and addresses alone.
std::string without_numbers(std::string text) {
    for (std::size_t at = text.find("0x"); at != std::string::npos; at = text.find("0x", at))
        text.erase(at, text.find_first_not_of("0123456789abcdefx", at) - at);
    std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    return text;
}

// A missing barrier lets many accesses race: which is told of first is chance.
std::string without_places_of_races(const std::string& text) {
    const std::size_t race = text.find("_race: ");
    return race == std::string::npos ? text : text.substr(0, race);
}

// A stray access is told from others by what it did alone, and a lost GPU by that alone; any other
// death by all that is said of it.
std::string way_to_die(const CounterexampleReport& c) {
    if (c.example.outcome == worker::Outcome::hang) return "hang";
    if (c.example.outcome == worker::Outcome::memory) return "memory";
    if (const auto& fault = c.example.fault) {
        if (fault->stray == worker::Fault::Access::read) return deaths_by_stray_read.which;
        if (fault->stray == worker::Fault::Access::write) return "write";
        if (fault->kind == worker::Fault::Kind::context_lost) return "context lost";
    }
    return without_numbers(without_places_of_races(c.violation().problem));
}

const Group earlier_calls{Group::Kind::earlier_calls, ""};

// A name that most of its counterexamples refute in other calls than their smallest is none.
void withdraw_if_few(Groups& groups, const Group& group,
                     std::vector<CounterexampleReport>& counterexamples) {
    const auto few = std::ranges::count_if(
        groups[group], [&](std::size_t n) { return counterexamples[n].diagnosis.few; });
    if (2 * few <= std::ssize(groups[group])) return;
    for (const std::size_t n : groups[group]) {
        static_cast<Explanation&>(counterexamples[n].diagnosis) = {};
        counterexamples[n].diagnosis.known = false;
    }
    join(groups, group, unexplained);
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
                const Explanation& named = counterexamples[groups[group].front()].diagnosis;
                const auto fits = std::ranges::find_if(*list, [&](const Explanation& e) {
                    return e.id == group.which || defect_of(e) == defect_of(named);
                });
                if (fits == list->end()) continue;
                static_cast<Explanation&>(d) = Explanation(*fits);
                d.known = true;
                // Beside right answers that refute it here, it says no more than where it was
                // found.
                if (d.unlimited) {
                    const Diagnosis& where = counterexamples[groups[group].front()].diagnosis;
                    d.says = where.says;
                    d.bare = where.bare;
                    d.holds_in = where.holds_in;
                }
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
    for (const Group& group : known) withdraw_if_few(groups, group, counterexamples);
}

// What a defect makes of some calls is that defect.
void join_entailed(Groups& groups, const std::vector<CounterexampleReport>& counterexamples) {
    std::vector<std::pair<Group, Group>> joined;
    for (const auto& [group, members] : groups) {
        const Diagnosis& d = counterexamples[members.front()].diagnosis;
        if (group.kind != Group::Kind::deviation || !d.deviation) continue;
        for (const std::string& id : d.deviation->entails)
            joined.emplace_back(Group{Group::Kind::deviation, id}, group);
    }
    for (const auto& [from, into] : joined) join(groups, from, into);
}

std::vector<std::pair<Group, Explanation>> named_groups(
    const Groups& groups, const std::vector<CounterexampleReport>& counterexamples) {
    std::vector<std::pair<Group, Explanation>> named;
    for (const auto& [group, members] : groups)
        if (group.kind == Group::Kind::deviation)
            named.emplace_back(group, counterexamples[members.front()].diagnosis);
    return named;
}

// Of a backward, what agrees with a known defect in too few elements to tell it from the truth is
// put down to it.
void join_backward(Groups& groups, const std::vector<CounterexampleReport>& counterexamples) {
    for (const auto& [into, defect] : named_groups(groups, counterexamples)) {
        const bool backward = into.which.starts_with(of_backward);
        join(groups, unexplained_backward, into, [&, id = defect.id](std::size_t n) {
            const Diagnosis& d = counterexamples[n].diagnosis;
            return std::ranges::count(backward ? d.fits : d.fits_in_forward, id) > 0;
        });
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
        join(groups, unexplained, earlier_calls);
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

// Beside a defect that is named, all that no name explains is one rest: nothing tells whether it is
// that defect or others. So it is where nothing is named: that some numbers are none names nothing.
void join_rest(Groups& groups, std::vector<CounterexampleReport>& counterexamples) {
    const auto lead = [&](const Group& group) -> const Diagnosis& {
        return counterexamples[groups[group].front()].diagnosis;
    };
    std::vector<Group> rest;
    bool named = false;
    for (const auto& [group, members] : groups) {
        const bool deviation = group.kind == Group::Kind::deviation;
        const bool memory =
            group == earlier_calls && std::ranges::any_of(members, [&](std::size_t n) {
                return counterexamples[n].diagnosis.known;
            });
        named = named || (deviation && !lead(group).general);
        if ((deviation && lead(group).general) || (group == earlier_calls && !memory) ||
            group.kind == Group::Kind::unexplained)
            rest.push_back(group);
    }
    if (!named && !groups.contains(unexplained)) return;
    for (const Group& group : rest) {
        if (!named && group.kind != Group::Kind::deviation) continue;
        if (group.kind == Group::Kind::deviation)
            for (const std::size_t n : groups[group]) counterexamples[n].diagnosis.known = false;
        if (group != unexplained) join(groups, group, unexplained);
    }
}

/// The call that a counterexample shows the defect in.
const Problem& shown_in(const CounterexampleReport& c) {
    const auto& evidence = c.diagnosis.evidence;
    return evidence && !evidence->wrong.empty() ? evidence->wrong.front().asked.problem
                                                : c.example.smallest.problem;
}

// Where one of a cause's counterexamples limits it to calls that another's is none of, all that is
// known is that it holds in the cases that fail.
void drop_limits_that_others_refute(const Groups& groups,
                                    std::vector<CounterexampleReport>& counterexamples) {
    for (const auto& [group, members] : groups) {
        if (group.kind != Group::Kind::deviation) continue;
        const auto limited_elsewhere = [&](std::size_t n) {
            const auto& holds_in = counterexamples[n].diagnosis.holds_in;
            return holds_in && !std::ranges::all_of(members, [&](std::size_t other) {
                       const CounterexampleReport& c = counterexamples[other];
                       return c.diagnosis.in_place_alone || holds_in(shown_in(c));
                   });
        };
        if (std::ranges::none_of(members, limited_elsewhere)) continue;
        for (const std::size_t n : members) {
            Diagnosis& d = counterexamples[n].diagnosis;
            if (!d.bare.empty()) d.says = d.bare + ", in the cases that fail";
            d.holds_in = {};
        }
    }
}

}  // namespace

void join(Groups& groups, const Group& from, const Group& into,
          const std::function<bool(std::size_t)>& which) {
    const auto found = groups.find(from);
    if (found == groups.end()) return;
    const auto moved = std::ranges::stable_partition(
        found->second, [&](std::size_t n) { return which && !which(n); });
    if (moved.empty()) return;
    std::vector<std::size_t>& all = groups[into];
    all.insert(all.end(), moved.begin(), moved.end());
    std::ranges::sort(all);
    found->second.erase(moved.begin(), moved.end());
    if (found->second.empty()) groups.erase(found);
}

bool differentiates(const CounterexampleReport& c) {
    const law::Property* law = law::find_property(c.example.law);
    return law != nullptr && law->needs.backward;
}

Groups deaths_and_unexplained(const std::vector<CounterexampleReport>& counterexamples) {
    Groups groups;
    for (std::size_t n = 0; n < counterexamples.size(); ++n) {
        const CounterexampleReport& c = counterexamples[n];
        if (c.died())
            groups[{Group::Kind::death, way_to_die(c)}].push_back(n);
        else if (c.diagnosis.cases == 0 && c.diagnosis.skipped.empty())
            groups[earlier_calls].push_back(n);
        else if (!c.diagnosis.known)
            groups[c.diagnosis.backward ? unexplained_backward : unexplained].push_back(n);
    }
    return groups;
}

void join_groups(Groups& groups, std::vector<CounterexampleReport>& counterexamples) {
    join_what_fits(groups, counterexamples);
    join_entailed(groups, counterexamples);
    join_backward(groups, counterexamples);
    join_places(groups, counterexamples);
    join_addresses(groups, counterexamples);
    // What is wrong in both passes and has no name in either is one defect more often than two.
    if (groups.contains(unexplained) && groups.contains(unexplained_backward))
        join(groups, unexplained_backward, unexplained);
    join_company(groups, counterexamples);
    join_rest(groups, counterexamples);
    drop_limits_that_others_refute(groups, counterexamples);
}

}  // namespace attest::diagnosis
