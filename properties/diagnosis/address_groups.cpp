#include "properties/diagnosis/address_groups.hpp"

#include <algorithm>
#include <string_view>

#include "properties/diagnosis/election.hpp"
#include "properties/law/property.hpp"
#include "reference/problem/feature.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::string_view of_all = "strides_ignored", of_one = "_strides", of_pages = "pages_";

bool is_of_addresses(const Group& group) {
    return group.kind == Group::Kind::deviation &&
           (group.which.ends_with(of_all) || group.which.ends_with(of_one));
}

/// A page number that is not the key's may be that of no page.
bool is_of_pages(const Group& group) {
    return group.kind == Group::Kind::deviation && group.which.starts_with(of_pages);
}

void join_ignored_strides(Groups& groups) {
    const auto named = std::ranges::find_if(groups, [](const auto& group) {
        return is_of_addresses(group.first) && !group.first.which.starts_with(of_backward) &&
               group.first.which.ends_with(of_one);
    });
    if (named == groups.end()) return;
    join(groups, {Group::Kind::deviation, std::string(of_all)}, Group(named->first));
}

/// The law asks for tensors with strides of their own, and may lay out further calls.
bool is_of_strides(const CounterexampleReport& c) {
    const law::Property* law = law::find_property(c.example.law);
    return law != nullptr && law->cases.require.has(Feature::layout);
}

void join_strays(Groups& groups, const Group& into, bool backward,
                 const std::vector<CounterexampleReport>& counterexamples) {
    const Feature needed = is_of_pages(into) ? Feature::paged : Feature::layout;
    const auto met = [&](std::size_t n) {
        const CounterexampleReport& c = counterexamples[n];
        return backward ? differentiates(c)
                        : features_of(c.example.smallest.problem).has(needed);
    };
    std::vector<Group> deaths;
    for (const auto& [group, members] : groups)
        // Some laws lay out calls of their own.
        if (group.kind == Group::Kind::death &&
            2 * std::ranges::count_if(members, met) > std::ssize(members))
            deaths.push_back(group);
    for (const Group& death : deaths) join(groups, death, into);
}

/// What is wrong where nothing stops a stray read is one defect with what dies of it.
void join_stray_reads(Groups& groups, const std::vector<CounterexampleReport>& counterexamples) {
    const Group deaths = deaths_by_stray_read;
    if (!groups.contains(deaths)) return;
    std::vector<Group> open;
    for (const auto& [group, members] : groups)
        if (group == unexplained || (group.kind == Group::Kind::deviation &&
                                     counterexamples[members.front()].diagnosis.general))
            open.push_back(group);
    for (const Group& group : open)
        join(groups, group, deaths,
             [&](std::size_t n) { return counterexamples[n].diagnosis.strays; });
}

}  // namespace

void join_addresses(Groups& groups, const std::vector<CounterexampleReport>& counterexamples) {
    join_ignored_strides(groups);
    join_stray_reads(groups, counterexamples);
    std::vector<Group> named;
    for (const auto& [group, members] : groups)
        if (is_of_addresses(group) || is_of_pages(group)) named.push_back(group);
    for (const Group& into : named) {
        const bool backward = into.which.starts_with(of_backward);
        join_strays(groups, into, backward, counterexamples);
        if (is_of_pages(into)) continue;
        join(groups, backward ? unexplained_backward : unexplained, into,
             [&](std::size_t n) { return is_of_strides(counterexamples[n]); });
    }
}

}  // namespace attest::diagnosis
