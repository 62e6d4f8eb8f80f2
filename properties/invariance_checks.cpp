#include "properties/invariance_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/law/hull_slack.hpp"
#include "properties/law/key_twins.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/tally.hpp"

namespace attest::laws {

namespace {

constexpr const char* nothing_visible = "no query sees a key";

// Values are multiples of 1/4 up to 2 and the factors 1/2, 1, 2 of either sign, so that a V + b W
// is exact in every format and the three runs are related by the law alone.
Tensor coarse_values(const Trial& trial, const Problem& problem, std::uint64_t stream) {
    std::uint64_t index = 0;
    return tensor_of(problem, Role::v, [&](int64_t, int64_t, int64_t, int64_t) {
        return on_grid(trial, stream, index++, 8, 4);
    });
}

// Scaling V by 2^k scales every product, partial sum and quotient by it, exactly, as long as none
// is subnormal: weights are at least exp(-2 max|S|) relative to the largest, above 2^-58, values
// are multiples of 1/4, and outputs away from the format's subnormals by a factor of four on either
// side. A kernel that claims determinism then returns 2^k O to the bit.
void compare_powers(Tally& tally, const Call& base, const Call& scaled, int exponent) {
    const Problem& problem = base.problem();
    const ScoreBounds scores(problem, base.inputs());
    const double floor =
        std::ldexp(4.0, traits(base.output_format()).exponent_min + std::abs(exponent));
    const Interval factor = Interval::exactly(std::ldexp(1.0, exponent));
    for (const Row& row : all_rows(problem)) {
        if (blind(base, row)) continue;
        const bool normal = base.trial().numerics().deterministic && scores.of(row) <= 20;
        for (int64_t c = 0; c < value_dim(problem); ++c) {
            const auto sentence = [&] {
                return fmt::format(
                    "values times 2^{} give {} another output than 2^{} times its own", exponent,
                    name_of(problem, row), exponent);
            };
            const ExpectedElement& e = element(base, row, c);
            if (normal && std::abs(e.value) - e.bound - e.error > floor) {
                const double expected = std::ldexp(output(base, row, c), exponent);
                const double observed = output(scaled, row, c);
                tally.fact(observed == expected, expected, observed, output_at(row, c), sentence);
            } else {
                tally.same(truth(base, row, c) * factor, truth(scaled, row, c), output_at(row, c),
                           sentence);
            }
        }
    }
}

}  // namespace

Verdict check_value_linear(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("invariance.value_linear");
    const auto factor = [&](std::uint64_t index) {
        const double size =
            std::ldexp(1.0, static_cast<int>(trial.random_below(stream, index, 3)) - 1);
        return (trial.random_bits(stream + 1, index) & 1) != 0 ? size : -size;
    };
    const double a = factor(0), b = factor(1);
    TensorSet v = trial.inputs(), w = v, sum = v, scaled = v;
    v.put(Role::v, coarse_values(trial, problem, stream + 2));
    w.put(Role::v, coarse_values(trial, problem, stream + 3));
    const int exponent = 1 + static_cast<int>(trial.random_below(stream, 2, 3));
    for (int64_t at = 0; at < v[Role::v].size(); ++at) {
        const double first = v[Role::v].get(at), second = w[Role::v].get(at);
        sum[Role::v].set(at, a * first + b * second);
        scaled[Role::v].set(at, std::ldexp(first, exponent));
    }
    const Call of_v(trial, problem, v), of_w(trial, problem, w), of_sum(trial, problem, sum);
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (blind(of_v, row)) continue;
        for (int64_t c = 0; c < value_dim(problem); ++c)
            tally.same(Interval::exactly(a) * truth(of_v, row, c) +
                           Interval::exactly(b) * truth(of_w, row, c),
                       truth(of_sum, row, c), output_at(row, c), [&] {
                           return fmt::format(
                               "the output of {} for {} V + {} W is not {} O(V) + {} O(W)",
                               name_of(problem, row), a, b, a, b);
                       });
    }
    compare_powers(tally, of_v, Call(trial, problem, scaled), exponent);
    return tally.verdict(nothing_visible);
}

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

}  // namespace

// Multiplying Q by 2^e and the scale by 2^-e changes no exponent's rounding: every product, partial
// sum and product with the scale is multiplied by a power of two along the way and comes back to
// the same number. A kernel that claims determinism must return the same bits, others the same
// truth.
Verdict check_scale_exchange(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("invariance.scale_exchange");
    // Even ones: a kernel may multiply both q and k by the root of the scale, and only the root of
    // a power of four is a power of two.
    constexpr int exponents[] = {-4, -2, 2, 4};
    const int exponent = exponents[trial.random_below(stream, 0, std::size(exponents))];
    Problem exchanged = problem;
    exchanged.scale = std::ldexp(effective_scale(problem), -exponent);
    exchanged = canonical(exchanged);
    if (!trial.supports(exchanged)) return not_applicable("the kernel does not take such a scale");
    if (!scales_exactly(problem, trial.inputs(), exponent))
        return not_applicable("a query element cannot be scaled exactly");
    TensorSet inputs = trial.inputs();
    Tensor& q = inputs[Role::q];
    for (int64_t at = 0; at < q.size(); ++at) q.set(at, std::ldexp(q.get(at), exponent));
    const Call first(trial), second(trial, exchanged, std::move(inputs));
    Likeness likeness;
    likeness.rows = defined_rows(first);
    // Who leaves out a product with one may compute the rest otherwise (ONNX Runtime does).
    const bool alike = effective_scale(problem) != 1 && effective_scale(exchanged) != 1;
    likeness.bits = trial.numerics().deterministic && alike;
    likeness.sentence = [&](const RowMatch& rows) {
        return fmt::format("queries times 2^{} at the scale over it change {}", exponent,
                           name_of(problem, rows.first));
    };
    return compare_runs(first, second, likeness);
}

Verdict check_neutral_key(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("invariance.neutral_key");
    constexpr Neutral ways[] = {Neutral::length, Neutral::boolean_mask, Neutral::additive_mask};
    const auto start = static_cast<std::size_t>(trial.random_below(stream, 0, std::size(ways)));
    const int64_t count = 1 + trial.random_below(stream, 1, 20);
    for (std::size_t k = 0; k < std::size(ways); ++k) {
        const Neutral way = ways[(start + k) % std::size(ways)];
        const auto wider =
            with_neutral_keys(trial, problem, trial.inputs(), way, count, stream + 2);
        if (!wider) continue;
        const Call first(trial), second(trial, wider->problem, wider->inputs);
        Likeness likeness;
        likeness.rows = defined_rows(first);
        likeness.sentence = [&](const RowMatch& rows) {
            return fmt::format("{} hidden keys more change {}", count,
                               name_of(problem, rows.first));
        };
        return compare_runs(first, second, likeness);
    }
    return not_applicable("the kernel takes no lengths and no mask to hide keys with");
}

// Nadaraya and Watson: the estimate at q_i is sum_j kappa(q_i, k_j) v_j / sum_j kappa(q_i, k_j),
// with kappa = exp(sigma q.k). Evaluated as written, in intervals: no maximum is subtracted,
// nothing is shared with the reference. Scores up to 300 keep every kappa finite.
Verdict check_kernel_regression(const Trial& trial) {
    const Problem& problem = trial.problem();
    const Call call(trial);
    const Sight sight = call.sight();
    const Scores scores(problem, call.inputs());
    const ScoreBounds size(problem, call.inputs());
    const Tensor& values = call.inputs()[Role::v];
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (sight.visible_count(row) == 0 || size.of(row) > 300) continue;
        const int64_t g = row.head / group_size(problem), columns = value_dim(problem);
        std::vector<Interval> sums(static_cast<std::size_t>(columns));
        Interval total;
        for (int64_t j = 0; j < problem.len_kv; ++j) {
            if (!sight.sees(row, j)) continue;
            const Interval kappa = exp(scores.score(row, j));
            total = total + kappa;
            for (int64_t c = 0; c < columns; ++c) {
                Interval& sum = sums[static_cast<std::size_t>(c)];
                sum = sum + kappa * Interval::exactly(values.at(row.batch, g, j, c));
            }
        }
        for (int64_t c = 0; c < columns; ++c) {
            const Interval estimate = sums[static_cast<std::size_t>(c)] / total;
            const ExpectedElement expected{estimate.mid(), estimate.radius(),
                                           element(call, row, c).bound};
            tally.element(output(call, row, c), expected, problem.format_o, output_at(row, c), [&] {
                return fmt::format("the output of {} is not the kernel regression of the values",
                                   name_of(problem, row));
            });
        }
    }
    return tally.verdict("no query sees a key at a score below 300");
}

}  // namespace attest::laws
