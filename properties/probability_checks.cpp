#include "properties/probability_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/law/hull_slack.hpp"
#include "properties/law/probe.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/sight.hpp"
#include "properties/law/tally.hpp"
#include "reference/bound/kernel_model.hpp"

namespace attest::laws {

namespace {

constexpr const char* nothing_visible = "no query sees a key";

}  // namespace

// The bound of a column that is constant: all of its centred terms vanish, so what is left is how
// far the sum of the weights, as they are summed into the output, may be from their sum in the
// denominator. The element's own bound is that of exactly this column.
Verdict check_row_sum(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("probability.row_sum");
    const auto head_index = [&](std::int64_t b, std::int64_t g) {
        return static_cast<std::uint64_t>(b * problem.heads_kv + g);
    };
    const auto column = [&](std::int64_t b, std::int64_t g) {
        return trial.random_below(stream, head_index(b, g), value_dim(problem));
    };
    const auto size = [&](std::int64_t b, std::int64_t g) {
        const auto at = head_index(b, g);
        return std::ldexp(1.0, static_cast<int>(trial.random_below(stream + 1, at, 8)) - 3);
    };
    TensorSet inputs = trial.inputs();
    Tensor& values = inputs[Role::v];
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            for (std::int64_t j = 0; j < problem.len_kv; ++j)
                values.put(b, g, j, column(b, g), size(b, g));

    const Call summed(trial, problem, std::move(inputs));
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (blind(summed, row)) continue;
        const std::int64_t g = row.head / group_size(problem);
        const std::int64_t c = column(row.batch, g);
        const double whole = size(row.batch, g), observed = output(summed, row, c);
        const ExpectedElement one{whole, 0, element(summed, row, c).bound};
        tally.element(observed, one, summed.output_format(), output_at(row, c), [&] {
            return fmt::format("the weights of {} sum to {:.6g}", name_of(problem, row),
                               observed / whole);
        });
    }
    return tally.verdict(nothing_visible);
}

// Weights, values and every partial sum are non-negative, and so is every rounding of them: no
// bound is involved. IEEE sums of +0 and non-negative numbers are never -0.
Verdict check_nonnegative(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv == 0) return not_applicable("there is no key");
    const std::uint64_t stream = stream_of("probability.nonnegative");
    const auto key_of = [&](std::int64_t b, std::int64_t g, std::int64_t c) {
        const std::int64_t at = (b * problem.heads_kv + g) * value_dim(problem) + c;
        return trial.random_below(stream, static_cast<std::uint64_t>(at), problem.len_kv);
    };
    const UnitRun shown = run_units(trial, problem, trial.inputs(), stream,
                                    unit_columns(trial, problem, stream, key_of));
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (blind(shown.call, row)) continue;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const double observed = output(shown.call, row, c);
            // Not `observed < 0`: a NaN is not non-negative either.
            const bool right = observed >= 0 && !std::signbit(observed);
            tally.fact(right, 0, observed, output_at(row, c), [&] {
                const auto at = shown.units.at(row.batch, row.head / group_size(problem), c);
                return fmt::format("the weight of key {} for {} is {:.6g}", shown.units.key[at],
                                   name_of(problem, row), observed / shown.units.size[at]);
            });
        }
    }
    return tally.verdict(nothing_visible);
}

// Each column is large at every key that one chosen row must not see, and zero elsewhere. A row
// that sees none of them has output exactly zero: exp(-inf) is 0, and sums of zeros are zero.
Verdict check_masked_zero(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("probability.masked_zero");
    const Sight sight(problem, trial.dialect(), trial.inputs());
    const std::int64_t group = group_size(problem), columns = value_dim(problem);
    if (problem.len_q == 0) return not_applicable(nothing_visible);
    const auto chosen_row = [&](std::int64_t b, std::int64_t g, std::int64_t c) {
        const auto at = static_cast<std::uint64_t>((b * problem.heads_kv + g) * columns + c);
        return Row{b, g * group + trial.random_below(stream, at, group),
                   trial.random_below(stream + 1, at, problem.len_q)};
    };
    TensorSet inputs = trial.inputs();
    const auto value = [&](std::int64_t b, std::int64_t g, std::int64_t j, std::int64_t c) {
        if (sight.sees(chosen_row(b, g, c), j)) return 0.0;
        // 2^10 to 2^12: finite in every format, and a weight of 2^-34 that leaks shows in f16.
        const auto at = static_cast<std::uint64_t>(
            ((b * problem.heads_kv + g) * problem.len_kv + j) * columns + c);
        return std::ldexp(1.0, 10 + static_cast<int>(trial.random_below(stream + 2, at, 3)));
    };
    inputs.put(Role::v, tensor_of(problem, Role::v, value));
    const TensorSet observed = trial.run(problem, inputs);

    Tally tally(problem);
    const Tensor& values = inputs[Role::v];
    for (const Row& row : all_rows(problem)) {
        if (!sight.is_query(row) || sight.empty(row)) continue;
        const std::int64_t g = row.head / group;
        std::vector<std::int64_t> last_hidden(static_cast<std::size_t>(columns), -1);
        std::vector<char> seen(static_cast<std::size_t>(columns), 0);
        for (std::int64_t j = 0; j < problem.len_kv; ++j) {
            const bool visible = sight.sees(row, j);
            for (std::int64_t c = 0; c < columns; ++c) {
                if (values.at(row.batch, g, j, c) == 0) continue;
                const auto at = static_cast<std::size_t>(c);
                visible ? void(seen[at] = 1) : void(last_hidden[at] = j);
            }
        }
        for (std::int64_t c = 0; c < columns; ++c) {
            const auto at = static_cast<std::size_t>(c);
            if (seen[at] != 0 || last_hidden[at] < 0) continue;
            const double shown = observed[Role::o].at(row.batch, row.head, row.query, c);
            tally.fact(shown == 0, 0, shown, output_at(row, c), [&] {
                return fmt::format("{} gives weight to a hidden key, such as key {}, {}",
                                   name_of(problem, row), last_hidden[at],
                                   sight.reason(row, last_hidden[at]));
            });
        }
    }
    return tally.verdict("no row has both visible and hidden keys");
}

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
        const Place place = output_at(row, high.column);
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

}  // namespace

Verdict check_order(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv < 2) return not_applicable("there are no two keys to compare");
    const std::uint64_t stream = stream_of("probability.order");
    const std::int64_t columns = value_dim(problem);
    std::vector<std::vector<std::int64_t>> orders;
    TensorSet inputs = trial.inputs();
    Tensor& keys = inputs[Role::k];
    const Sight lengths(problem, trial.dialect(), trial.inputs());
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
    const Sight sight = run.call.sight();
    const Scores scores(problem, inputs);
    Tally tally(problem);
    std::vector<Shown> shown;
    for (const Row& row : all_rows(problem)) {
        shown.clear();
        const std::int64_t g = row.head / group_size(problem);
        for (std::int64_t c = 0; c < std::min(columns, problem.len_kv); ++c) {
            const std::int64_t key = run.units.key[run.units.at(row.batch, g, c)];
            if (!sight.sees(row, key)) continue;
            shown.push_back({key, c, scores.score(row, key), run.weight(row, c)});
        }
        compare_order(tally, problem, inputs[Role::k], row, shown);
    }
    return tally.verdict("no query sees two of the keys shown");
}

namespace {

// One visible key: the maximum is its own score, so its exponent is 0, or in a fused multiply-add
// the rounding of the maximum, ua |s|; its weight w is 1 within that and the error of exp (`off`).
// The denominator is the same w, unless w was rounded for the second product, and then to 1 itself
// where off is below half the spacing next to 1 (up / 2). Merging parts through their LSE costs
// expm1(merge), as in forward_bound.cpp; a product, a division and a normalisation remain. Where w
// may round to something else, the reference's general bound is taken.
ExpectedElement single_key(const Trial& trial, const Problem& problem, double value,
                           double score_max, double general_bound) {
    const KernelModel m = resolve(problem, trial.numerics());
    const double off = std::expm1(1.01 * m.ua * score_max + 3 * std::log1p(m.exp_error));
    if (m.up > 0 && !(off < m.up / 2)) return {value, 0, general_bound};
    const double merge =
        m.may_split ? std::expm1(8 * m.ua * (score_max + 2) + 6 * m.exp_error + 4 * m.ua) : 0;
    const double relative = 1.01 * ((m.up > 0 ? off : 0) + 6 * m.ua + merge + m.uo);
    const double size = std::abs(value);
    const double underflow = 16 * m.oma + 2 * (m.oma + m.weight_floor) * size + m.omo;
    return {value, 0, std::min(general_bound, relative * size + underflow)};
}

void compare_single_rows(Tally& tally, const Call& call) {
    const Problem& problem = call.problem();
    const Sight sight = call.sight();
    const ScoreBounds scores(problem, call.inputs());
    const Tensor& values = call.inputs()[Role::v];
    for (const Row& row : all_rows(problem)) {
        if (sight.visible_count(row) != 1) continue;
        std::int64_t key = 0;
        while (!sight.sees(row, key)) ++key;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const double value = values.at(row.batch, row.head / group_size(problem), key, c);
            const ExpectedElement expected = single_key(
                call.trial(), problem, value, scores.of(row), element(call, row, c).bound);
            tally.element(output(call, row, c), expected, problem.format_o, output_at(row, c), [&] {
                return fmt::format("{} sees key {} alone, and its output is not that key's value",
                                   name_of(problem, row), key);
            });
        }
    }
}

}  // namespace

// The rows of the case that see one key, and the case cut to one random key.
Verdict check_single_key(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv == 0) return not_applicable("there is no key");
    Tally tally(problem);
    compare_single_rows(tally, Call(trial));
    const std::int64_t kept =
        trial.random_below(stream_of("probability.single_key"), 0, problem.len_kv);
    const Problem one = plain(problem, problem.len_q, 1);
    if (!tally.violated() && trial.supports(one)) {
        TensorSet inputs = blank_inputs(one);
        inputs.put(Role::q, trial.inputs()[Role::q]);
        for (const Role role : {Role::k, Role::v})
            inputs.put(role, gather(trial.inputs()[role], 2, {kept}));
        compare_single_rows(tally, Call(trial, one, std::move(inputs)));
    }
    return tally.verdict("no query sees exactly one key");
}

}  // namespace attest::laws
