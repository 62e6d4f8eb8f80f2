#include "properties/diagnosis/cross_examination.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "properties/diagnosis/agreement.hpp"

namespace attest::diagnosis {

namespace {

using Suspects = std::map<std::string, std::shared_ptr<const Deviation>>;

Suspects suspects_of(const std::vector<CounterexampleReport>& counterexamples) {
    Suspects suspects;
    const auto add = [&suspects](const Explanation& e) {
        if (e.deviation) suspects.emplace(e.id, e.deviation);
    };
    for (const CounterexampleReport& c : counterexamples) {
        if (c.died() || !c.diagnosis.known || c.diagnosis.backward) continue;
        add(c.diagnosis);
        for (const Explanation& e : c.diagnosis.also) add(e);
    }
    return suspects;
}

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

}  // namespace

void cross_examine(std::vector<CounterexampleReport>& counterexamples) {
    const Suspects suspects = suspects_of(counterexamples);
    for (CounterexampleReport& c : counterexamples) {
        Diagnosis& d = c.diagnosis;
        if (c.died() || d.backward || !d.evidence || d.cases == 0) continue;
        for (const auto& [id, suspect] : suspects)
            if (!is_named(d, id)) examine(d, *suspect);
    }
}

}  // namespace attest::diagnosis
