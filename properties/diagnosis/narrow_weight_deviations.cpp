// Deviations of backward whose scores or weights are rounded to a narrower format.

#include <functional>
#include <string>
#include <utility>

#include "properties/diagnosis/backward_deviation.hpp"

namespace attest::diagnosis {

namespace {

/// A step in another format than the accumulator's.
struct StepFormat {
    std::string id, says;
    std::function<Precision(const Problem&)> of;
};

std::vector<StepFormat> step_formats() {
    std::vector<StepFormat> list;
    for (const Precision narrow : {Precision::bf16, Precision::f16}) {
        const std::string format(name(narrow));
        list.push_back({format, format, [narrow](const Problem&) { return narrow; }});
    }
    list.push_back(
        {"own", "the format of the queries", [](const Problem& p) { return p.format_q; }});
    return list;
}

}  // namespace

std::vector<BackwardDeviation> narrow_weight_deviations() {
    std::vector<BackwardDeviation> list;
    for (const StepFormat& narrow : step_formats()) {
        const auto rounded_here = [of = narrow.of](Near x, const ModelPair& pair) {
            return rounded_to(x, of(pair.row.call.problem()));
        };
        const auto add = [&](const char* id, const char* what, auto exchange) {
            list.push_back(exchanged_step(
                id + narrow.id, what + narrow.says,
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
