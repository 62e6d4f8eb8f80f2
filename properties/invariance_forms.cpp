// The same attention written another way: another scale, every key twice, keys nobody sees, the
// sums of the definition. The outputs are those of the case, within the bounds of the two runs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/hull_slack.hpp"
#include "properties/law/paired_keys.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/shifted.hpp"
#include "properties/law/statistics.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

namespace {

/// Whether every element times 2^exponent is one more member of the format, and no product of two
/// elements comes near the subnormals of f32.
bool scales_exactly(const Problem& problem, const TensorSet& inputs, int exponent) {
    double least_q = 1, least_k = 1;
    for (const double q : inputs[Role::q].to_doubles()) {
        const double scaled = std::ldexp(q, exponent);
        if (std::ldexp(round_to(scaled, problem.format_q), -exponent) != q) return false;
        if (q != 0) least_q = std::min({least_q, std::abs(q), std::abs(scaled)});
    }
    for (const double k : inputs[Role::k].to_doubles())
        if (k != 0) least_k = std::min(least_k, std::abs(k));
    return least_q >= 0x1p-24 && least_k >= 0x1p-24;
}

/// Whether some step that q passes is rounded to f16. Its subnormal numbers begin at 2^-14, amid
/// what products and partial sums are, and its numbers end at 65504: a power of two does not pass
/// there unchanged, and the two runs keep their bounds alone.
bool rounds_to_f16(const Numerics& n, const Problem& problem) {
    const auto f16 = [&](NumberFormat step) {
        return resolved(step, problem.format_q) == Precision::f16;
    };
    return f16(n.accumulate) || f16(n.scores) || f16(n.query) || n.operands == Operands::f16 ||
           (f16(n.rotation) && problem.rope.style != RopeStyle::none);
}

// Multiplying Q by 2^e and the scale by 2^-e changes no exponent's rounding: every product, partial
// sum and product with the scale is multiplied by a power of two along the way and comes back to
// the same number. A kernel that claims determinism must return the same bits, others the same
// truth.
Plan check_scale_exchange(const Given& given) {
    const Problem& problem = given.problem();
    const std::uint64_t stream = stream_of("invariance.scale_exchange");
    // Even ones: a kernel may multiply both q and k by the root of the scale, and only the root of
    // a power of four is a power of two.
    constexpr int exponents[] = {-4, -2, 2, 4};
    const int exponent = exponents[given.random_below(stream, 0, std::size(exponents))];
    Problem exchanged = problem;
    exchanged.scale = std::ldexp(effective_scale(problem), -exponent);
    exchanged = canonical(exchanged);
    if (!given.supports(exchanged)) return not_applicable("the kernel does not take such a scale");
    if (!scales_exactly(problem, given.inputs(), exponent))
        return not_applicable("a query element cannot be scaled exactly");
    // Who leaves out a product with one may compute the rest otherwise (ONNX Runtime does).
    const bool alike = effective_scale(problem) != 1 && effective_scale(exchanged) != 1 &&
                       !rounds_to_f16(given.numerics(), problem);
    return [exchanged, exponent, alike](const Trial& trial) -> Judgement {
        TensorSet inputs = trial.inputs();
        Tensor& q = inputs[Role::q];
        for (int64_t at = 0; at < q.size(); ++at) q.set(at, std::ldexp(q.get(at), exponent));
        const Run first(trial), second(trial, exchanged, std::move(inputs));
        Relation relation;
        relation.rows = defined_rows(first);
        relation.promise = same_bits_if(trial.numerics().deterministic && alike);
        relation.sentence = [&](const RowMatch& rows) {
            return fmt::format("queries times 2^{} at the scale over it change {}", exponent,
                               name_of(trial.problem(), rows.first));
        };
        return compare_runs(first, second, relation);
    };
}

CaseSpace scale_space() {
    CaseSpace s = moderate_cases(attention);
    s.require = FeatureSet(Feature::scale);
    return s;
}

void scale_ignored(Question& q) {
    q.problem.scale.reset();
}

Property scale_exchange() {
    return {
        .id = "invariance.scale_exchange",
        .statement = "Queries times c at a scale over c give the same; for c = 2^e to the bit.",
        .statement_short = "(cQ, scale/c) = (Q, scale)",
        .why =
            "sigma/c (cq).k = sigma q.k. For a power of two every product, partial sum and product "
            "with the scale is the same number times a power of two, so a kernel that claims "
            "determinism comes back to the same scores, and, where neither scale is one, the same "
            "bits; others to the same truth within both bounds.",
        .source = "definition of the score; IEEE 754-2019 scaling by the radix",
        .compares = Compares::bound,
        .cases = scale_space(),
        .check = check_scale_exchange,
        .turned_red_by = {{.id = "scale_ignored", .asks = scale_ignored}},
    };
}

Plan check_duplicate(const Given& given) {
    const std::uint64_t stream = stream_of("invariance.duplicate");
    const bool side_by_side = (given.random_bits(stream, 0) & 1) != 0;
    const PairedCase twice = with_keys_twice(given.problem(), given.inputs(), side_by_side);
    if (!given.supports(twice.problem)) return not_taken(twice.problem);
    return [twice](const Trial& trial) -> Judgement {
        const Run first(trial), second(trial, twice.problem, twice.inputs);
        const Interval log_two = log(Interval::exactly(2));
        Tally tally(trial.problem());
        compare_shifted(tally, first, second, "giving every key and value twice",
                        [&](const Row&) { return log_two; });
        return tally.judgement(nothing_visible);
    };
}

CaseSpace doubled_space() {
    CaseSpace s = moderate_cases(
        placeless.without(Feature::cache).without(Feature::paged).without(Feature::sink));
    s.cost = 16;
    return s;
}

Property duplicate() {
    return {
        .id = "invariance.duplicate",
        .statement = "Every key and value twice: the output stays, L grows by log 2.",
        .statement_short = "every key twice: same output, L + log 2",
        .why =
            "Every exponential comes twice in numerator and denominator: O does not change, the "
            "sum doubles. Keys stand side by side or the whole row is repeated, so tiles are cut "
            "elsewhere.",
        .source = "softmax over a multiset",
        .compares = Compares::bound,
        .cases = doubled_space(),
        .check = check_duplicate,
        .turned_red_by = {planted::last_key_scores_zero()},
    };
}

Plan check_neutral_key(const Given& given) {
    const Problem& problem = given.problem();
    const std::uint64_t stream = stream_of("invariance.neutral_key");
    constexpr Neutral ways[] = {Neutral::length, Neutral::boolean_mask, Neutral::additive_mask};
    const auto start = static_cast<std::size_t>(given.random_below(stream, 0, std::size(ways)));
    const int64_t count = 1 + given.random_below(stream, 1, 20);
    for (std::size_t k = 0; k < std::size(ways); ++k) {
        const Neutral way = ways[(start + k) % std::size(ways)];
        const auto wider =
            with_neutral_keys(given, problem, given.inputs(), way, count, stream + 2);
        if (!wider) continue;
        return [wider = *wider, count](const Trial& trial) -> Judgement {
            const Run first(trial), second(trial, wider.problem, wider.inputs);
            Relation relation;
            relation.rows = defined_rows(first);
            relation.sentence = [&](const RowMatch& rows) {
                return fmt::format("{} hidden keys more change {}", count,
                                   name_of(trial.problem(), rows.first));
            };
            return compare_runs(first, second, relation);
        };
    }
    return not_applicable("the kernel takes no lengths and no mask to hide keys with");
}

CaseSpace neutral_space() {
    return moderate_cases(attention.without(Feature::documents)
                              .without(Feature::cache)
                              .without(Feature::paged)
                              .without(Feature::alibi)
                              .without(Feature::rope));
}

Property neutral_key() {
    return {
        .id = "invariance.neutral_key",
        .statement = "Appending keys that no query may see changes nothing.",
        .statement_short = "appending hidden keys changes nothing",
        .why =
            "A hidden key adds exp(-inf) = 0 to both sums. The keys lie past every sequence's "
            "length, or a boolean or additive mask hides them; the kernel may cut its tiles "
            "elsewhere, so both runs are held to their bounds.",
        .source = "definition of the mask",
        .compares = Compares::bound,
        .cases = neutral_space(),
        .check = check_neutral_key,
        .turned_red_by = {planted::every_mask_ignored()},
    };
}

// Nadaraya and Watson: the estimate at q_i is sum_j kappa(q_i, k_j) v_j / sum_j kappa(q_i, k_j),
// with kappa = exp(sigma q.k). Evaluated as written, in intervals: no maximum is subtracted,
// nothing is shared with the reference. Scores up to 300 keep every kappa finite.
Judgement check_kernel_regression(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Run call(trial);
    const Visibility visibility = call.visibility();
    const Scores scores(problem, call.inputs());
    const ScoreBounds size(problem, call.inputs());
    const Tensor& values = call.inputs()[Role::v];
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (visibility.visible_count(row) == 0 || size.of(row) > 300) continue;
        const int64_t g = row.head / group_size(problem), columns = value_dim(problem);
        std::vector<Interval> sums(static_cast<std::size_t>(columns));
        Interval total;
        for (int64_t j = 0; j < problem.len_kv; ++j) {
            if (!visibility.sees(row, j)) continue;
            const Interval kappa = exp(scores.score(row, j));
            total = total + kappa;
            for (int64_t c = 0; c < columns; ++c) {
                Interval& sum = sums[static_cast<std::size_t>(c)];
                sum = sum + kappa * Interval::exactly(values.at(row.batch, g, j, c));
            }
        }
        for (int64_t c = 0; c < columns; ++c) {
            const Interval estimate = sums[static_cast<std::size_t>(c)] / total;
            const bound::ExpectedElement expected{estimate.mid(), estimate.radius(),
                                                  element(call, row, c).bound};
            tally.element(output(call, row, c), expected, problem.format_o, output_at(row, c), [&] {
                return fmt::format("the output of {} is not the kernel regression of the values",
                                   name_of(problem, row));
            });
        }
    }
    return tally.judgement("no query sees a key at a score below 300");
}

CaseSpace regression_space() {
    CaseSpace s = moderate_cases(attention.without(Feature::softcap)
                                     .without(Feature::rope)
                                     .without(Feature::sink)
                                     .without(Feature::mask_additive)
                                     .without(Feature::alibi));
    s.kinds.push_back(ValueKind::logit50);
    return s;
}

Property kernel_regression() {
    return {
        .id = "invariance.kernel_regression",
        .statement = "The output is the Nadaraya-Watson estimate with kernel exp(scale q.k).",
        .statement_short = "the output is a Nadaraya-Watson estimate",
        .why =
            "O_i = sum_j kappa(q_i, k_j) v_j / sum_j kappa(q_i, k_j) with kappa = exp(sigma q.k): "
            "kernel regression of the values at the query. Evaluated as written, in interval "
            "arithmetic, without the maximum that attention kernels and the reference subtract.",
        .source = "Nadaraya 1964; Watson 1964; Tsai et al. 2019",
        .compares = Compares::bound,
        .cases = regression_space(),
        .check = always<check_kernel_regression>,
        .turned_red_by = {planted::scores_capped(0.5)},
    };
}

}  // namespace

std::vector<Property> invariance_forms() {
    return {scale_exchange(), duplicate(), neutral_key(), kernel_regression()};
}

}  // namespace attest::law
