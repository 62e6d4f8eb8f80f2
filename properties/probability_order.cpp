// Weights in the order of the scores; and the one weight of a query that sees a single key.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/hull_slack.hpp"
#include "properties/law/probe.hpp"
#include "properties/law/property.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/tally.hpp"
#include "properties/law/visibility.hpp"
#include "reference/bound/kernel_model.hpp"

namespace attest::law {

namespace {

/// One key that a column shows to a row.
struct Shown {
    std::int64_t key = 0, column = 0;
    Interval score, weight;
};

bool equal_keys(const Tensor& keys, const Row& row, const Problem& problem, std::int64_t first,
                std::int64_t second) {
    const std::int64_t g = row.head / group_size(problem);
    for (std::int64_t c = 0; c < problem.dim_qk; ++c)
        if (keys.at(row.batch, g, first, c) != keys.at(row.batch, g, second, c)) return false;
    return true;
}

// If S_ij > S_ik then P_ij > P_ik in truth: exp is strictly monotone, the denominator common. What
// the kernel shows of each is an interval for the truth, and the larger one must reach the smaller.
// Two equal keys have equal scores, so their intervals must meet. Which score is larger is known
// for certain: the law computes it with a proven error.
void compare_order(Tally& tally, const Problem& problem, const Tensor& keys, const Row& row,
                   std::vector<Shown>& shown) {
    std::sort(shown.begin(), shown.end(),
              [](const Shown& a, const Shown& b) { return a.score.mid() < b.score.mid(); });
    for (std::size_t at = 1; at < shown.size(); ++at) {
        const Shown &low = shown[at - 1], &high = shown[at];
        const ElementPlace place = output_at(row, high.column);
        if (equal_keys(keys, row, problem, low.key, high.key)) {
            tally.same(low.weight, high.weight, place, [&] {
                return fmt::format("keys {} and {} are equal, but not their weights for {}",
                                   low.key, high.key, name_of(problem, row));
            });
        } else if (low.score.hi < high.score.lo) {
            tally.at_most(low.weight, high.weight, place, [&] {
                return fmt::format("key {} scores above key {} for {} but weighs less", high.key,
                                   low.key, name_of(problem, row));
            });
        }
    }
}

Judgement check_order(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv < 2) return nothing_compared("there are no two keys to compare");
    const std::uint64_t stream = stream_of("probability.order");
    const std::int64_t columns = value_dim(problem);
    std::vector<std::vector<std::int64_t>> orders;
    TensorSet inputs = trial.inputs();
    Tensor& keys = inputs[Role::k];
    const Visibility lengths(problem, trial.dialect(), trial.inputs());
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g) {
            const auto head = static_cast<std::uint64_t>(b * problem.heads_kv + g);
            orders.push_back(permutation(trial, stream + head, problem.len_kv));
            // Every second key is, with probability 1/2, a copy of the one before it in the order.
            auto& order = orders.back();
            const std::int64_t length = lengths.length_kv(b);
            const auto past = std::stable_partition(
                order.begin(), order.end(), [length](std::int64_t key) { return key < length; });
            for (std::size_t at = 1; at < static_cast<std::size_t>(past - order.begin()); at += 2)
                if (trial.random_below(stream + head, 1u << 20 | at, 2) == 0)
                    for (std::int64_t c = 0; c < problem.dim_qk; ++c)
                        keys.put(b, g, order[at], c, keys.at(b, g, order[at - 1], c));
        }
    const auto key_of = [&](std::int64_t b, std::int64_t g, std::int64_t c) {
        const auto& order = orders[static_cast<std::size_t>(b * problem.heads_kv + g)];
        return c < problem.len_kv ? order[static_cast<std::size_t>(c)] : std::int64_t{-1};
    };
    const UnitRun run =
        run_units(trial, problem, inputs, stream, unit_columns(trial, problem, stream, key_of));
    const Visibility visibility = run.call.visibility();
    const Scores scores(problem, inputs);
    Tally tally(problem);
    std::vector<Shown> shown;
    for (const Row& row : all_rows(problem)) {
        shown.clear();
        const std::int64_t g = row.head / group_size(problem);
        for (std::int64_t c = 0; c < std::min(columns, problem.len_kv); ++c) {
            const std::int64_t key = run.units.key[run.units.at(row.batch, g, c)];
            if (!visibility.sees(row, key)) continue;
            shown.push_back({key, c, scores.score(row, key), run.weight(row, c)});
        }
        compare_order(tally, problem, inputs[Role::k], row, shown);
    }
    return tally.judgement("no query sees two of the keys shown");
}

/// Scores are sigma q.k with a cap: the order of two keys follows from them alone.
CaseSpace order_space() {
    CaseSpace s = weighing_cases(
        sinkless.without(Feature::mask_additive).without(Feature::alibi).without(Feature::rope));
    s.admits = [](const Problem& p) { return p.len_kv > 1 && value_dim(p) > 1; };
    return s;
}

Property order() {
    return {
        .id = "probability.order",
        .statement = "A key that scores higher weighs no less; equal keys weigh the same.",
        .statement_short = "a key that scores higher weighs no less",
        .why =
            "P_ij = exp(S_ij) / Z_i with one Z_i for the row, and exp is increasing: S_ij > S_ik "
            "implies P_ij > P_ik, and equal keys have equal scores. The scores are computed with a "
            "proven error, so that only pairs whose order is certain are compared; each weight is "
            "known within the bound of the output that shows it.",
        .source = "monotonicity of softmax",
        .compares = Compares::bound,
        .cases = order_space(),
        .check = always<check_order>,
        .turned_red_by = {planted::scores_negated()},
    };
}

// One visible key: the maximum is its own score, so its exponent is 0, or in a fused multiply-add
// the rounding of the maximum, ua |s|; its weight w is 1 within that and the error of exp (`off`).
// The denominator is the same w, unless w was rounded for the second product, and then to 1 itself
// where off is below half the spacing next to 1 (up / 2). Merging parts through their LSE costs
// expm1(merge), as in forward_bound.cpp; a product, a division and a normalisation remain. Where w
// may round to something else, the reference's general bound is taken. Relative errors multiply as
// (1 + a)(1 + b)... - 1 <= exp(a + b + ...) - 1, and exp(x) - 1 <= 1.01 x up to x = 0.0198.
bound::ExpectedElement single_key(const Trial& trial, const Problem& problem, double value,
                                  double score_max, double general_bound) {
    const bound::KernelModel m = bound::resolve(problem, trial.numerics());
    const double off = std::expm1(1.01 * m.ua * score_max + 3 * std::log1p(m.exp_error));
    // Where a score of half precision may overflow, the general bound claims nothing either.
    const bool overflows = m.coarse_steps && !std::isfinite(general_bound);
    if (overflows || m.centred_values || m.uv > 0 || (m.up > 0 && !(off < m.up / 2)))
        return {value, 0, general_bound};
    const double merge =
        m.may_split ? std::expm1(8 * m.ua * (score_max + 2) + 6 * m.exp_error + 4 * m.ua) : 0;
    const double added = 3 * m.epsilon;  // to l, which is at least 1 - off, twice where merged
    const double relative = 1.01 * ((m.up > 0 ? off : 0) + 6 * m.ua + merge + m.uo + added);
    const double size = std::abs(value);
    const double underflow = 16 * m.oma + 2 * (m.oma + m.weight_floor) * size + m.omo;
    return {value, 0, std::min(general_bound, relative * size + underflow)};
}

void compare_single_rows(Tally& tally, const Run& call) {
    const Problem& problem = call.problem();
    const Visibility visibility = call.visibility();
    const ScoreBounds scores(problem, call.inputs());
    const Tensor& values = call.inputs()[Role::v];
    for (const Row& row : all_rows(problem)) {
        if (visibility.visible_count(row) != 1) continue;
        std::int64_t key = 0;
        while (!visibility.sees(row, key)) ++key;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const double value = values.at(row.batch, row.head / group_size(problem), key, c);
            const bound::ExpectedElement expected = single_key(
                call.trial(), problem, value, scores.of(row), element(call, row, c).bound);
            tally.element(output(call, row, c), expected, problem.format_o, output_at(row, c), [&] {
                return fmt::format("{} sees key {} alone, and its output is not that key's value",
                                   name_of(problem, row), key);
            });
        }
    }
}

// The rows of the case that see one key, and the case cut to one random key.
Judgement check_single_key(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv == 0) return nothing_compared("there is no key");
    Tally tally(problem);
    compare_single_rows(tally, Run(trial));
    const std::int64_t kept =
        trial.random_below(stream_of("probability.single_key"), 0, problem.len_kv);
    const Problem one = plain(problem, problem.len_q, 1);
    if (!tally.violated() && trial.supports(one)) {
        TensorSet inputs = blank_inputs(one);
        inputs.put(Role::q, trial.inputs()[Role::q]);
        for (const Role role : {Role::k, Role::v})
            inputs.put(role, gather(trial.inputs()[role], 2, {kept}));
        compare_single_rows(tally, Run(trial, one, std::move(inputs)));
    }
    return tally.judgement("no query sees exactly one key");
}

Property single_key() {
    return {
        .id = "probability.single_key",
        .statement = "A query that sees one key returns that key's value.",
        .statement_short = "one visible key: the output is its value",
        .why =
            "The one weight is exp(0)/exp(0) = 1, so O_i = v_j. What may differ is the weight's "
            "rounding on its way into the two sums, which cancels but for a few roundings of the "
            "accumulator: after rounding to half or bfloat16, v_j to the bit.",
        .source = "definition of softmax",
        .compares = Compares::bound,
        .cases = weighing_cases(sinkless),
        .check = always<check_single_key>,
        .turned_red_by = {planted::answers_times(1.02)},
        .knows_more = true,
    };
}

}  // namespace

std::vector<Property> probability_order() {
    return {order(), single_key()};
}

}  // namespace attest::law
