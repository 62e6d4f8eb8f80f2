#include "properties/diagnosis/coarser_step.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

/// Numerics with a word more.
struct WordOfStep {
    const char* id;
    const char* says;
    const char* word;
    void (*declare)(Numerics&, const Problem&);
    bool (*present)(const Problem&);
    /// An error of chance is a few percent of what it can be at worst, where it is a sum of some
    /// hundred roundings: a bound far above the errors explains anything. Where every step of the
    /// kernel is coarser the bound adds up them all, of which one may be: there an experiment
    /// tells (step_experiment.hpp).
    double telling_part = 1.0 / 64;
};

bool everywhere(const Problem&) {
    return true;
}
bool turned(const Problem& p) {
    return p.rope.style != RopeStyle::none;
}
bool biased(const Problem& p) {
    return p.mask.tensor.kind == MaskKind::additive || p.alibi || p.sink;
}

// A kernel has one exp for all formats, or two whose errors are of one size.
double ulps_of_f32(double ulps, const Problem& p) {
    const bool wide = p.format_q == Precision::f64 || p.format_kv == Precision::f64;
    return wide ? ulps * 0x1p29 : ulps;
}

constexpr WordOfStep steps[] = {
    {"step_epsilon", "errors of the size of a number added to the sum of the weights",
     "epsilon 1e-6", [](Numerics& n, const Problem&) { n.epsilon = 0x1p-20; }, everywhere},
    {"step_bias_f16", "errors of the size of mask, slopes or sinks rounded to f16", "bias f16",
     [](Numerics& n, const Problem&) { n.bias = NumberFormat::f16; }, biased},
    {"step_rotation_f16", "errors of the size of cos and sin rounded to f16", "rotation f16",
     [](Numerics& n, const Problem&) { n.rotation = NumberFormat::f16; }, turned},
    {"step_query_f16", "errors of the size of queries rounded to f16", "query f16",
     [](Numerics& n, const Problem&) { n.query = NumberFormat::f16; }, everywhere},
    {"step_scores_f32", "errors of the size of scores rounded to f32", "scores f32",
     [](Numerics& n, const Problem&) { n.scores = NumberFormat::f32; }, everywhere},
    {"step_scores_f16", "errors of the size of scores rounded to f16", "scores f16",
     [](Numerics& n, const Problem&) { n.scores = NumberFormat::f16; }, everywhere},
    {"step_centred_values", "errors of the size of values centred before they are rounded",
     "centred_values true", [](Numerics& n, const Problem&) { n.centred_values = true; },
     everywhere},
    {"step_centred_keys", "errors of the size of keys centred before they are rounded",
     "centred_keys true", [](Numerics& n, const Problem&) { n.centred_keys = true; }, everywhere},
    {"step_bias_bf16", "errors of the size of mask, slopes or sinks rounded to bf16", "bias bf16",
     [](Numerics& n, const Problem&) { n.bias = NumberFormat::bf16; }, biased},
    {"step_rotation_bf16", "errors of the size of cos and sin rounded to bf16", "rotation bf16",
     [](Numerics& n, const Problem&) { n.rotation = NumberFormat::bf16; }, turned},
    {"step_query_bf16", "errors of the size of queries rounded to bf16", "query bf16",
     [](Numerics& n, const Problem&) { n.query = NumberFormat::bf16; }, everywhere},
    {"step_scores_bf16", "errors of the size of scores rounded to bf16", "scores bf16",
     [](Numerics& n, const Problem&) { n.scores = NumberFormat::bf16; }, everywhere},
    {"step_partials_f16", "errors of the size of outputs of splits rounded to f16", "partials f16",
     [](Numerics& n, const Problem&) { n.partials = NumberFormat::f16; }, everywhere},
    {"step_partials_bf16", "errors of the size of outputs of splits rounded to bf16",
     "partials bf16", [](Numerics& n, const Problem&) { n.partials = NumberFormat::bf16; },
     everywhere},
    {"step_exp_1024", "errors of the size of an exp off by 1024 ulp", "exp_ulp 1024",
     [](Numerics& n, const Problem& p) { n.exp_ulp = ulps_of_f32(1024, p); }, everywhere},
    {"step_exp_16384", "errors of the size of an exp off by 16384 ulp", "exp_ulp 16384",
     [](Numerics& n, const Problem& p) { n.exp_ulp = ulps_of_f32(16384, p); }, everywhere},
    {"step_accumulate_f16", "errors of the size of sums in f16", "accumulate f16",
     [](Numerics& n, const Problem&) { n.accumulate = NumberFormat::f16; }, everywhere, 1.0 / 1024},
    {"step_accumulate_bf16", "errors of the size of sums in bf16", "accumulate bf16",
     [](Numerics& n, const Problem&) { n.accumulate = NumberFormat::bf16; }, everywhere,
     1.0 / 1024},
};

constexpr std::int64_t telling_min = 3;

bool explains(const WordOfStep& step, const std::vector<Evidence>& wrong, Explanation& found,
              std::int64_t telling_least = telling_min) {
    std::int64_t telling = 0;
    for (const Evidence& e : wrong) {
        const Problem& p = e.asked.problem;
        if (!step.present(p)) return false;
        Numerics coarser = e.asked.numerics;
        step.declare(coarser, p);
        const bound::Expected allowed = oracle::attend(p, e.asked.dialect, coarser, e.asked.inputs);
        const auto all = [&](Role role, const std::vector<bound::ExpectedElement>& own,
                             const std::vector<bound::ExpectedElement>& truth, Precision format) {
            for (std::size_t n = 0; n < own.size(); ++n) {
                const double seen = e.observed[role].get(static_cast<std::int64_t>(n));
                if (bound::judge(seen, own[n], format) == bound::Agreement::disagrees) return false;
                ++found.of;
                telling += std::isfinite(own[n].bound) &&
                           bound::judge(seen, truth[n], format) == bound::Agreement::disagrees &&
                           std::abs(seen - own[n].value) > step.telling_part * own[n].bound;
            }
            return true;
        };
        if (!all(Role::o, allowed.output, e.truth.output, p.format_o)) return false;
        if (e.observed.has(Role::lse) && !all(Role::lse, allowed.lse, e.truth.lse, lse_format(p)))
            return false;
    }
    found.agree = found.of;
    return telling >= telling_least;
}

}  // namespace

std::vector<Explanation> coarser_steps(const std::vector<Evidence>& wrong) {
    std::vector<Explanation> all;
    for (const WordOfStep& step : steps) {
        Explanation found;
        if (wrong.empty() || !explains(step, wrong, found)) continue;
        found.id = step.id;
        found.says = step.says;
        found.declared = "no such step; by design? declare numerics: " + std::string(step.word);
        all.push_back(std::move(found));
    }
    return all;
}

std::vector<std::string> fitting_steps(const std::vector<Evidence>& wrong) {
    std::vector<std::string> ids;
    for (const WordOfStep& step : steps) {
        Explanation found;
        if (!wrong.empty() && explains(step, wrong, found, 0)) ids.emplace_back(step.id);
    }
    return ids;
}

bool is_coarser_step(const std::string& id) {
    return std::ranges::any_of(steps, [&id](const WordOfStep& step) { return id == step.id; });
}

}  // namespace attest::diagnosis
