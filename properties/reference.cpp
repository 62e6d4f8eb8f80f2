// The reference laws: agreement with the truth, element by element, each within its own derived
// bound. The other laws see the same kernel from sides where no reference is needed.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/equal_weights.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/statistics.hpp"
#include "properties/law/tally.hpp"
#include "reference/bound/kernel_model.hpp"
#include "reference/bound/rounding.hpp"
#include "reference/bound/structure_bound.hpp"

namespace attest::law {

namespace {

CaseSpace any_case() {
    return {.allow = attention, .any_length = true};
}

/// The outputs of one role alone: a law judges what it is named after.
TensorSet only(const TensorSet& observed, Role role) {
    TensorSet part;
    if (observed.has(role)) part.put(role, observed[role]);
    return part;
}

Judgement check_output(const Trial& trial) {
    return trial.compare(trial.problem(), trial.inputs(), only(trial.observed(), Role::o));
}

Property output() {
    return {
        .id = "reference.output",
        .statement = "Every output element is within its own derived bound of the exact value.",
        .statement_short = "every output is within its derived bound",
        .why =
            "O_ic = sum_j P_ij v_jc is computed with a certified error. A kernel whose sums, "
            "exponentials and roundings are as declared can differ from it by no more than the "
            "bound, in whatever order it works; the bound is worst case and centred: an error "
            "common to all weights of a row cancels. Rounding to the output format is monotone, so "
            "the element must lie between the rounded ends. Undecided elements are computed again "
            "in wider arithmetic, disagreements confirmed in exact arithmetic.",
        .source = "Vaswani et al. 2017, eq. 1; Higham 2002, Accuracy and Stability, lemma 3.1",
        .compares = Compares::bound,
        .tells = Tells::truth,
        .cases = any_case(),
        .check = always<check_output>,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

Judgement check_lse(const Trial& trial) {
    return trial.compare(trial.problem(), trial.inputs(), only(trial.observed(), Role::lse));
}

CaseSpace lse_case() {
    CaseSpace space = any_case();
    space.require = FeatureSet(Feature::lse);
    return space;
}

Property lse() {
    return {
        .id = "reference.lse",
        .statement = "Every log-sum-exp is within its derived bound, and -inf for empty rows.",
        .statement_short = "every log-sum-exp is within its derived bound",
        .why =
            "L_i = log sum_j exp(S_ij), the sink included. Its absolute error is at most the "
            "relative error of the sum and the roundings of maximum and logarithm. The output does "
            "not show an error common to all weights of a row; L does.",
        .source = "Milakov and Gimelshein 2018; Dao et al. 2022, section 3.1",
        .compares = Compares::bound,
        .tells = Tells::truth,
        .needs = {.lse = true},
        .cases = lse_case(),
        .check = always<check_lse>,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

Judgement check_decode(const Trial& trial) {
    return trial.compare(trial.problem(), trial.inputs(), trial.observed());
}

CaseSpace cached_case() {
    CaseSpace space = any_case();
    space.require_any = {FeatureSet(Feature::cache), FeatureSet(Feature::cache, Feature::paged),
                         FeatureSet(Feature::cache, Feature::ring, Feature::window)};
    return space;
}

Property decode() {
    return {
        .id = "reference.decode",
        .statement = "Over a KV cache, contiguous or paged, every output is within its bound.",
        .statement_short = "over a KV cache every output is within its bound",
        .why =
            "Where the keys lie in memory does not enter the definition: a cache holds the first "
            "cache.len keys of the sequence and the new ones after them, query i stands at "
            "position n - q + i. So the outputs are those of attention on the gathered keys, "
            "within the same bounds.",
        .source = "Kwon et al. 2023 (PagedAttention), section 4.1",
        .compares = Compares::bound,
        .tells = Tells::truth,
        .cases = cached_case(),
        .check = always<check_decode>,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

Plan check_structure(const Given& given) {
    const Problem& problem = given.problem();
    if (!bound::structure_declared(bound::resolve(problem, given.numerics()), problem.splits))
        return not_applicable("the kernel declares no structure for this problem");
    return [](const Trial& trial) { return trial.compare_structure(); };
}

// Where a sink enters the running maximum is not declared. Only half formats round the weights.
CaseSpace structured_case() {
    CaseSpace space = any_case();
    space.allow = space.allow.without(Feature::sink).without(Feature::splits);
    space.formats = {Precision::f16, Precision::bf16};
    space.any_length = false;  // no tile holds the keys of a long context
    return space;
}

Property structure() {
    return {
        .id = "reference.structure",
        .statement =
            "Where tile and rounding of the weights are declared, the output is what they compute.",
        .statement_short = "the output is what the declared tile computes",
        .why =
            "A declared tile fixes the running maximum each weight is taken against, so the "
            "rounding of P is part of the answer and no error: it is replayed, and only weights "
            "that straddle a rounding boundary are paid for. A disagreement says that the kernel "
            "does something else than it declares: its class is structure.",
        .source = "Dao et al. 2022, algorithm 1; reference/bound/README.md, Declared structure",
        .compares = Compares::bound,
        .tells = Tells::truth,
        .needs = {.structure = true},
        .cases = structured_case(),
        .check = check_structure,
        .turned_red_by = {{.id = "tile_unused", .declares = [](Numerics& n) { n.tile = 64; }}},
        .knows_more = true,
    };
}

// With every key zero all scores are zero and every weight is exp(0) = 1 (or 1/n, a power of two).
// Values are whole numbers, n of them a power of two: sums below 2^24 are exact in any order, so is
// their quotient by n, and one rounding is left, that to the output format.
Judgement judge_rounding(const Trial& trial, const Problem& problem) {
    constexpr std::int64_t most = 255;
    const std::uint64_t stream = stream_of("reference.rounding");
    TensorSet inputs = blank_inputs(problem);
    std::uint64_t index = 0;
    inputs.put(Role::q, tensor_of(problem, Role::q, [&](auto, auto, auto, auto) {
                   return on_grid(trial, stream + 1, index++, 8, 8);
               }));
    inputs.put(Role::k, tensor_of(problem, Role::k, [](auto, auto, auto, auto) { return 0.0; }));
    inputs.put(Role::v, tensor_of(problem, Role::v, [&](auto, auto, auto, auto) {
                   return on_grid(trial, stream + 2, index++, most, 1);
               }));
    const Run call(trial, problem, inputs);
    const Precision format = call.output_format();
    const auto count = static_cast<double>(problem.len_kv);
    const double slack =
        mean_slack(bound::resolve(problem, trial.numerics()), trial.numerics(), count);
    Tally tally(problem);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            for (std::int64_t c = 0; c < value_dim(problem); ++c) {
                double sum = 0, size = 0;
                for (std::int64_t j = 0; j < problem.len_kv; ++j) {
                    const double v = inputs[Role::v].at(b, h / group_size(problem), j, c);
                    sum += v;
                    size += std::abs(v);
                }
                const double mean = sum / count, room = slack * size / count;
                const double expected = round_to(mean, format);
                // A tie goes to either side: the numbers next to the mean round to one each.
                const bool exact = room == 0 && expected == mean;
                const auto end = [&](double x, double side) {
                    return exact ? mean : round_to(std::nextafter(x, side), format);
                };
                const double low = end(mean - room, -HUGE_VAL), high = end(mean + room, HUGE_VAL);
                for (std::int64_t i = 0; i < problem.len_q; ++i) {
                    const Row row{b, h, i};
                    const double observed = output(call, row, c);
                    if (!tally.fact(low <= observed && observed <= high, expected, observed,
                                    output_at(row, c), [] {
                                        return std::string(
                                            "a mean that is known exactly is not rounded to the "
                                            "nearest output");
                                    }))
                        break;
                }
            }
    Judgement judgement = tally.judgement("nothing was compared");
    if (judgement.violation) judgement.violation->violation_class = ViolationClass::structure;
    return judgement;
}

Plan check_rounding(const Given& given) {
    if (given.numerics().centred_values) return not_applicable(coarse_steps);
    const std::int64_t keys = std::int64_t{1}
                              << (1 + given.random_below(stream_of("reference.rounding"), 0, 7));
    Problem problem =
        plain(given.problem(), std::min<std::int64_t>(given.problem().len_q, 4), keys);
    problem.splits = 1;
    problem = canonical(problem);
    if (!given.supports(problem)) problem.splits = 0;
    if (!given.supports(problem)) return not_taken(problem);
    return [problem](const Trial& trial) { return judge_rounding(trial, problem); };
}

Property rounding() {
    return {
        .id = "reference.rounding",
        .statement = "A mean that is known exactly is rounded to the nearest output.",
        .statement_short = "an exact mean is rounded to the nearest output",
        .why =
            "With all keys zero every weight is exp(0) = 1. Values are whole numbers and their "
            "count a power of two: every sum and the quotient are exact in any order, and the "
            "rounding to the output format is the only one left: to nearest, a tie to either side; "
            "its class is structure. Who may merge normalised parts unasked (neither the feature "
            "splits nor a sum_chunk is declared) has the roundings of that beside it.",
        .source = "IEEE 754-2019, section 4.3.1",
        .compares = Compares::property,
        .tells = Tells::truth,
        .cases = {.allow = FeatureSet(Feature::layout, Feature::lse, Feature::dim_v, Feature::gqa),
                  .cost = 16,
                  .len_max = 64,
                  .limited_because = "its keys are its own: a power of two of them"},
        .check = check_rounding,
        .turned_red_by = {planted::answers_times(0.999)},
        .knows_more = true,
    };
}

// One element in a thousand runs of a billion elements: the union bound over a case's elements.
constexpr double probable_rate = 1e-9;

Plan check_probable(const Given& given) {
    if (given.numerics().matrix_unit) return not_applicable(truncated_sums);
    if (has_coarse_steps(given.numerics())) return not_applicable(coarse_steps);
    return [](const Trial& trial) -> Judgement {
        Judgement judgement = trial.compare_probable(probable_rate);
        judgement.statistic = Statistic{"error over the probable bound", judgement.worst_ratio, 1,
                                        probable_rate, judgement.elements};
        return judgement;
    };
}

Property probable() {
    return {
        .id = "reference.probable",
        .statement = "Every output is as near to the exact value as random roundings leave it.",
        .statement_short = "every output is within its probable bound",
        .why =
            "If rounding errors are independent and unbiased, their sum exceeds lambda times the "
            "root of the sum of their squares with probability 2 exp(-3 lambda^2 / 2). Equal "
            "scores and equal roundings are grouped, lost addends counted whole. The model is an "
            "assumption: its class is suspect.",
        .source = "Higham and Mary 2019; Azuma 1967; reference/bound/README.md, Random roundings",
        .compares = Compares::statistic,
        .tells = Tells::truth,
        .cases = any_case(),
        .check = check_probable,
        .turned_red_by = {planted::answers_times(1.02)},
        .knows_more = true,
    };
}

}  // namespace

std::vector<Property> reference() {
    return {output(), lse(), decode(), structure(), rounding(), probable()};
}

}  // namespace attest::law
