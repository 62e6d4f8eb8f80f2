#include "properties/diagnosis/cross_examination.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "properties/diagnosis/agreement.hpp"

namespace attest::diagnosis {

namespace {

bool is_named(const Diagnosis& d, const std::string& id) {
    return (d.known && d.id == id) ||
           std::ranges::find(d.also, id, &Explanation::id) != d.also.end();
}

void examine(Diagnosis& d, const Deviation& suspect) {
    std::optional<SharedExplanation> own = shared_explanation(suspect, *d.evidence);
    if (!own) return;
    if (own->whole)
        d.also.push_back(std::move(own->explanation));
    else if (!d.known || d.general)
        d.shared.push_back(std::move(own->explanation));
}

/// A kernel whose two passes share what is wrong answers some calls of forward rightly: those where
/// only gradients show it.
void examine_backward(Diagnosis& d, const std::map<std::string, Explanation>& forward) {
    if (!d.known) return;
    std::vector<Explanation> accepted{d};
    accepted.insert(accepted.end(), d.also.begin(), d.also.end());
    for (Explanation& own : accepted) {
        const auto same = forward.find(own.in_forward);
        if (same == forward.end()) continue;
        own.id = same->second.id;
        own.says = same->second.says;
        own.declared = same->second.declared;
        own.of_both = true;
        d.also.push_back(std::move(own));
    }
}

std::map<std::string, Explanation> named_in_forward(
    const std::vector<CounterexampleReport>& counterexamples) {
    std::map<std::string, Explanation> named;
    for (const CounterexampleReport& c : counterexamples) {
        if (c.died() || !c.diagnosis.known || c.diagnosis.backward) continue;
        named.emplace(c.diagnosis.id, c.diagnosis);
        for (const Explanation& e : c.diagnosis.also) named.emplace(e.id, e);
    }
    return named;
}

}  // namespace

NamedDeviations named_in(const std::vector<CounterexampleReport>& counterexamples) {
    NamedDeviations named;
    for (const CounterexampleReport& c : counterexamples)
        if (!c.died()) add_named(named, c.diagnosis);
    return named;
}

void cross_examine(std::vector<CounterexampleReport>& counterexamples) {
    const NamedDeviations suspects = named_in(counterexamples);
    const std::map<std::string, Explanation> named = named_in_forward(counterexamples);
    for (CounterexampleReport& c : counterexamples) {
        Diagnosis& d = c.diagnosis;
        if (c.died() || d.cases == 0) continue;
        if (d.backward) examine_backward(d, named);
        if (d.backward || !d.evidence) continue;
        for (const NamedDeviation& suspect : suspects)
            if (!is_named(d, suspect.id)) examine(d, *suspect.deviation);
    }
}

}  // namespace attest::diagnosis
