#include "properties/diagnosis/same_places.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "properties/diagnosis/agreement.hpp"
#include "properties/diagnosis/backward_evidence.hpp"
#include "properties/diagnosis/diagnose_backward.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::diagnosis {

namespace {

struct ShownCount {
    std::int64_t wrong = 0, shown = 0;  ///< of the wrong ones, those where the defect shows
    std::int64_t telling = 0;           ///< elements that it predicts otherwise than the truth

    bool most() const { return telling > 0 && 2 * shown > wrong; }
};

void count(ShownCount& places, const Tensor& observed,
           const std::vector<bound::ExpectedElement>& truth,
           const std::vector<bound::ExpectedElement>& predicted, Precision format) {
    if (predicted.size() != truth.size()) return;
    const auto within = [format](double value, const bound::ExpectedElement& e) {
        return bound::judge(value, e, format) != bound::Agreement::disagrees;
    };
    for (std::size_t n = 0; n < truth.size(); ++n) {
        const bound::ExpectedElement& e = predicted[n];
        const bool open = std::isfinite(e.value) && !std::isfinite(e.bound);
        const bool other = !open && !within(round_to(truth[n].value, format), e);
        places.telling += other;
        if (within(observed.get(static_cast<std::int64_t>(n)), truth[n])) continue;
        ++places.wrong;
        places.shown += open || other;
    }
}

bool shows_in(const Deviation& defect, const Evidence& e) {
    const auto most = [&](const Specification& asked) {
        const auto predicted = predict(defect, asked, e.truth);
        ShownCount places;
        if (!predicted) return false;
        const Problem& p = e.asked.problem;
        if (!predicted->output.empty())
            count(places, e.observed[Role::o], e.truth.output, predicted->output, p.format_o);
        if (e.observed.has(Role::lse) && !predicted->lse.empty())
            count(places, e.observed[Role::lse], e.truth.lse, predicted->lse, lse_format(p));
        return places.most();
    };
    if (most(e.asked)) return true;
    if (!defect.by_parts) return false;
    Specification parted = e.asked;
    return std::ranges::any_of(parts_of_own_accord(e.asked.problem), [&](std::int64_t parts) {
        parted.problem.splits = parts;
        return most(parted);
    });
}

bool shows_in(const std::string& defect, const BackwardEvidence& e) {
    return std::ranges::any_of(backward_deviations(), [&](const BackwardDeviation& d) {
        if (d.id != defect) return false;
        const auto predicted = predict(d, e);
        if (!predicted) return false;
        ShownCount places;
        for (const Role role : e.wrong)
            count(places, e.observed[role], e.truth[role], (*predicted)[role],
                  law::gradient_format(e.asked.problem, role));
        return places.most();
    });
}

/// In most of the calls behind `open`, most of the wrong elements are such as the defect predicts
/// otherwise than the truth, or says nothing certain of; and it predicts something. False where the
/// defect is of no list, or of the other pass.
bool wrong_where_it_shows(const Diagnosis& open, const Diagnosis& defect) {
    if (open.backward != defect.backward) return false;
    const auto in_most = [](const auto& calls, const auto& shows) {
        return 2 * std::ranges::count_if(calls, shows) > std::ssize(calls);
    };
    if (open.backward)
        return open.backward_evidence &&
               in_most(open.backward_evidence->wrong,
                       [&](const BackwardEvidence& e) { return shows_in(defect.id, e); });
    return open.evidence && defect.deviation &&
           in_most(open.evidence->wrong,
                   [&](const Evidence& e) { return shows_in(*defect.deviation, e); });
}

}  // namespace

void join_places(Groups& groups, std::vector<CounterexampleReport>& counterexamples) {
    const auto lead = [&](const Group& group) -> const Diagnosis& {
        return counterexamples[groups[group].front()].diagnosis;
    };
    std::vector<Group> named, open;
    for (const auto& [group, members] : groups) {
        const bool deviation = group.kind == Group::Kind::deviation;
        if (deviation && !lead(group).general) named.push_back(group);
        if ((deviation && lead(group).general) || group.kind == Group::Kind::unexplained)
            open.push_back(group);
    }
    std::ranges::stable_sort(named, std::greater{},
                             [&](const Group& group) { return groups[group].size(); });
    // A name that right answers refute elsewhere takes no more than it explains.
    const auto bears_more = [&](const Group& group) {
        const auto joined = std::ranges::count_if(groups[group], [&](std::size_t n) {
            return counterexamples[n].diagnosis.in_place_alone;
        });
        const Diagnosis& d = lead(group);
        const bool refuted = !d.bare.empty() && !d.holds_in;
        return !refuted || 2 * joined < std::ssize(groups[group]);
    };
    const auto taken = [&](std::size_t n) {
        Diagnosis& d = counterexamples[n].diagnosis;
        const auto into = std::ranges::find_if(named, [&](const Group& group) {
            return bears_more(group) && wrong_where_it_shows(d, lead(group));
        });
        if (into == named.end()) return false;
        static_cast<Explanation&>(d) = {};
        d.known = false;
        d.in_place_alone = true;
        groups[*into].push_back(n);
        return true;
    };
    for (const Group& group : open) {
        std::erase_if(groups[group], taken);
        if (groups[group].empty()) groups.erase(group);
    }
    for (const Group& group : named) std::ranges::sort(groups[group]);
}

}  // namespace attest::diagnosis
