// Deviations of backward whose scores or weights are rounded to a narrower format.

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

std::vector<BackwardDeviation> narrow_weight_deviations() {
    std::vector<BackwardDeviation> list;
    for (const RoundsTo narrow : narrow_or_own) {
        const auto rounded_here = [narrow](Near x, const ModelPair& pair) {
            const auto format = format_in(narrow, pair.row.call.problem());
            return format ? rounded_to(x, *format) : x;
        };
        const auto add = [&](const char* id, const char* what, auto exchange) {
            list.push_back(exchanged_step(
                id + id_of(narrow), what + words_of(narrow),
                [=](const BackwardCall&, ModelSteps& s) { exchange(s, rounded_here); }));
        };
        add("value_weight_", "dV of weights rounded to ", [](ModelSteps& s, auto round) {
            s.value_weight = [=](const ModelPair& pair) { return round(pair.p, pair); };
        });
        // The weight as dropout leaves it.
        add("value_weight_", "dV of weights rounded to ", [](ModelSteps& s, auto round) {
            s.value_weight = [=](const ModelPair& pair) {
                const double kept = pair.facts.kept;
                return kept == 0 ? pair.p : 1 / kept * round(kept * pair.p, pair);
            };
        });
        add("score_", "scores rounded to ", [](ModelSteps& s, auto round) {
            s.probability = [=](const ModelPair& pair) {
                ModelPair coarse = pair;
                coarse.score = round(pair.score, pair);
                return plain_probability(coarse);
            };
        });
        add("weight_", "weights rounded to ", [](ModelSteps& s, auto round) {
            s.probability = [=](const ModelPair& pair) {
                return round(plain_probability(pair), pair);
            };
        });
    }
    return list;
}

}  // namespace attest::diagnosis
