// What may be done to the inputs without changing the outputs, or changing them in a known way.
// Every law here runs the kernel on both and needs no reference but the bounds of the two runs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/hull_slack.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/shifted.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

namespace {

/// Scores are sigma q.k plus what a constant does not touch: no rotation, no cap, no other logit.
constexpr FeatureSet shiftable =
    attention.without(Feature::softcap).without(Feature::rope).without(Feature::sink);

// Values are multiples of 1/4 up to 2 and the factors 1/2, 1, 2 of either sign, so that a V + b W
// is exact in every format and the three runs are related by the law alone.
Tensor coarse_values(const Trial& trial, const Problem& problem, std::uint64_t stream) {
    return grid_tensor(trial, problem, Role::v, stream, 8, 0.25);
}

// Scaling V by 2^k scales every product, partial sum and quotient by it, exactly, as long as none
// is subnormal: weights are at least exp(-2 max|S|) relative to the largest, above 2^-58, values
// are multiples of 1/4, accumulator and outputs of parts are normal at their product, as f16 is
// not, and outputs are away from the format's subnormals by a factor of four on either side. A
// kernel that claims determinism then returns 2^k O to the bit.
void compare_powers(Tally& tally, const Run& base, const Run& scaled, int exponent) {
    const Problem& problem = base.problem();
    const ScoreBounds scores(problem, base.inputs());
    const double floor =
        std::ldexp(4.0, traits(base.output_format()).exponent_min + std::abs(exponent));
    const Interval factor = Interval::exactly(std::ldexp(1.0, exponent));
    const Numerics& numerics = base.trial().numerics();
    const auto normal_in = [&](NumberFormat step) {
        constexpr int product_least = -60;  // of the exponents
        return traits(resolved(step, problem.format_q)).exponent_min <= product_least;
    };
    const bool exact =
        numerics.deterministic && normal_in(numerics.accumulate) && normal_in(numerics.partials);
    for (const Row& row : all_rows(problem)) {
        if (blind(base, row)) continue;
        const bool normal = exact && scores.of(row) <= 20;
        for (int64_t c = 0; c < value_dim(problem); ++c) {
            const auto sentence = [&] {
                return fmt::format(
                    "values times 2^{} give {} another output than 2^{} times its own", exponent,
                    name_of(problem, row), exponent);
            };
            const bound::ExpectedElement& e = element(base, row, c);
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

Judgement check_value_linear(const Trial& trial) {
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
    const Run of_v(trial, problem, v), of_w(trial, problem, w), of_sum(trial, problem, sum);
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
    compare_powers(tally, of_v, Run(trial, problem, scaled), exponent);
    return tally.judgement(nothing_visible);
}

double a_quarter_more(const bound::ExpectedElement& right, std::int64_t) {
    return right.value + 0.25;
}

Property value_linear() {
    return {
        .id = "invariance.value_linear",
        .statement = "The output is linear in the values: O(aV + bW) = a O(V) + b O(W).",
        .statement_short = "the output is linear in the values",
        .why =
            "The weights do not depend on the values, so O = P V is linear in V. Values are coarse "
            "enough for a V + b W to be exact. A power of two scales every product, sum and "
            "quotient exactly while none is subnormal: a deterministic kernel then returns the "
            "scaled output to the bit.",
        .source = "O = P V; IEEE 754-2019 scaling by the radix",
        .compares = Compares::bound,
        .cases = moderate_cases(attention),
        .check = always<check_value_linear>,
        .turned_red_by = {{.id = "answers_plus_a_quarter", .answers = a_quarter_more}},
    };
}

/// The case, or one time in three the case with a narrow window, if the kernel takes one: a running
/// maximum must get over leading tiles that are hidden whole, at scores far from zero.
Problem with_hidden_beginning(const Trial& trial, std::uint64_t stream) {
    Problem narrowed = trial.problem();
    if (trial.random_below(stream, 0, 3) != 0 || narrowed.mask.window.limited()) return narrowed;
    narrowed.mask.window.left = trial.random_below(stream, 1, 9);
    return trial.supports(narrowed) ? narrowed : trial.problem();
}

/// A constant added to every score of a row: `with` holds the inputs after it, shift(row) says by
/// how much.
struct KeyShift {
    TensorSet without, with;
    std::vector<double> added;  ///< u, [batch, heads_kv, dim_qk]
};

// Either a random vector, keys and vector multiples of 1/16 whose sums are exact in every format;
// or a channel that queries hold at 64 and keys at 0, then at one large number: that shifts all
// scores by up to -1e5, where sentinels and clamps show. A constant column among the values shows
// weights that are lost altogether, which a bound this far out would otherwise forgive.
KeyShift shifted_keys(const Trial& trial, const Problem& problem, std::uint64_t stream) {
    // Beyond -104 exp underflows in f32, beyond 88 it overflows; clamps are seen at +-30.
    constexpr double far[] = {-1e5, -120, -120, -30, 30, 120, 1000};
    KeyShift shift{trial.inputs(), {}, {}};
    const auto heads = static_cast<std::size_t>(problem.batch * problem.heads_kv);
    const auto dim = static_cast<std::size_t>(problem.dim_qk);
    shift.added.assign(heads * dim, 0);
    Tensor &q = shift.without[Role::q], &k = shift.without[Role::k], &v = shift.without[Role::v];
    const int64_t channel = trial.random_below(stream, 0, problem.dim_qk);
    // Far shifts meet hidden leading tiles where there is something to hide them: mostly drawn
    // there.
    const Mask& mask = problem.mask;
    const bool hides = mask.causal || mask.window.limited() || mask.tensor.kind != MaskKind::none;
    if (trial.random_below(stream, 1, 4) < (hides ? 3 : 2)) {
        for (int64_t at = channel; at < q.size(); at += problem.dim_qk) q.set(at, 64);
        for (int64_t at = channel; at < k.size(); at += problem.dim_qk) k.set(at, 0);
        const double wanted = far[trial.random_below(stream, 2, std::size(far))];
        const double step = round_to(wanted / (64 * effective_scale(problem)), problem.format_kv);
        for (std::size_t head = 0; head < heads; ++head)
            shift.added[head * dim + static_cast<std::size_t>(channel)] = step;
    } else {
        for (int64_t at = 0; at < k.size(); ++at)
            k.set(at, std::clamp(std::round(k.get(at) * 16) / 16, -4.0, 4.0));
        for (std::size_t at = 0; at < shift.added.size(); ++at)
            shift.added[at] = on_grid(trial, stream + 1, at, 64, 16);
    }
    const int64_t constant = trial.random_below(stream, 3, value_dim(problem));
    for (int64_t at = constant; at < v.size(); at += value_dim(problem)) v.set(at, 2);
    shift.with = shift.without;
    for (int64_t at = 0; at < k.size(); ++at) {
        const auto head = static_cast<std::size_t>(at / (problem.len_kv * problem.dim_qk));
        const auto c = static_cast<std::size_t>(at % problem.dim_qk);
        shift.with[Role::k].set(at, k.get(at) + shift.added[head * dim + c]);
    }
    return shift;
}

Judgement check_key_shift(const Trial& trial) {
    const Problem problem = with_hidden_beginning(trial, stream_of("invariance.key_shift") + 2);
    const KeyShift shift = shifted_keys(trial, problem, stream_of("invariance.key_shift"));
    for (const double u : shift.added)
        if (!(std::abs(u) < traits(Precision::f16).max_finite))
            return nothing_compared("the scale is too small for such a shift");
    const Run first(trial, problem, shift.without), second(trial, problem, shift.with);
    const Interval scale = Interval::exactly(effective_scale(problem));
    Tally tally(problem);
    compare_shifted(tally, first, second, "adding one vector to every key", [&](const Row& row) {
        const int64_t head = row.batch * problem.heads_kv + row.head / group_size(problem);
        Interval sum;
        for (int64_t c = 0; c < problem.dim_qk; ++c)
            sum = sum +
                  Interval::exactly(first.inputs()[Role::q].at(row.batch, row.head, row.query, c)) *
                      Interval::exactly(
                          shift.added[static_cast<std::size_t>(head * problem.dim_qk + c)]);
        return scale * sum;
    });
    return tally.judgement(nothing_visible);
}

/// -1e5 in f32 leaves scores to 2^-7: with more channels the bounds would say nothing.
CaseSpace key_shift_space() {
    CaseSpace s = moderate_cases(shiftable);
    s.dim_max = 24;
    s.limited_because = "at scores of -1e5 the bounds of more channels would say nothing";
    return s;
}

Property key_shift() {
    return {
        .id = "invariance.key_shift",
        .statement = "Adding one vector to every key changes no output and shifts L by s q.u.",
        .statement_short = "adding one vector to every key changes no output",
        .why =
            "S_ij becomes S_ij + sigma q_i.u for all j of a row: softmax does not change, "
            "log-sum-exp grows by that number. Keys and u are exact on a common grid, or u is one "
            "channel that shifts scores by up to -1e5, where clamps and sentinels for masked "
            "scores show.",
        .source = "shift invariance of softmax",
        .compares = Compares::bound,
        .cases = key_shift_space(),
        .check = always<check_key_shift>,
        .turned_red_by = {planted::scores_capped(5)},
    };
}

// Biases become multiples of 1/4 up to 8, the constants multiples of 1/4 up to 24: sums are exact.
// A mask that is shared by rows is shifted by one constant for all of them.
Judgement check_bias_shift(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("invariance.bias_shift");
    TensorSet without = trial.inputs();
    Tensor& mask = without[Role::mask];
    for (int64_t at = 0; at < mask.size(); ++at)
        if (std::isfinite(mask.get(at)))
            mask.set(at, std::clamp(std::round(mask.get(at) * 4) / 4, -8.0, 8.0));
    const auto constant = [&](int64_t mask_row) {
        return on_grid(trial, stream, static_cast<std::uint64_t>(mask_row), 96, 4);
    };
    TensorSet with = without;
    const Shape& shape = mask.shape();
    for (int64_t at = 0; at < mask.size(); ++at)
        with[Role::mask].set(at, mask.get(at) + constant(at / shape[3]));
    const Run first(trial, problem, without), second(trial, problem, with);
    Tally tally(problem);
    compare_shifted(tally, first, second, "adding a constant to a bias row", [&](const Row& row) {
        const int64_t b = shape[0] == 1 ? 0 : row.batch, h = shape[1] == 1 ? 0 : row.head;
        const int64_t i = shape[2] == 1 ? 0 : row.query;
        return Interval::exactly(constant((b * shape[1] + h) * shape[2] + i));
    });
    return tally.judgement(nothing_visible);
}

CaseSpace bias_shift_space() {
    CaseSpace s = moderate_cases(shiftable);
    s.require = FeatureSet(Feature::mask_additive);
    return s;
}

void biases_clamped_at_4(Question& q) {
    Tensor& mask = q.inputs[Role::mask];
    for (int64_t at = 0; at < mask.size(); ++at) mask.set(at, std::min(mask.get(at), 4.0));
}

Property bias_shift() {
    return {
        .id = "invariance.bias_shift",
        .statement = "Adding a constant to a bias row changes no output and shifts L by it.",
        .statement_short = "adding a constant to a bias row changes no output",
        .why =
            "S_ij becomes S_ij + c_i for all j of a row: softmax does not change, L_i grows by "
            "c_i. Biases and constants are multiples of 1/4 whose sums are exact; -inf stays -inf.",
        .source = "shift invariance of softmax",
        .compares = Compares::bound,
        .cases = bias_shift_space(),
        .check = always<check_bias_shift>,
        .turned_red_by = {{.id = "biases_clamped_at_4", .asks = biases_clamped_at_4}},
    };
}

}  // namespace

std::vector<Property> invariance() {
    return {value_linear(), key_shift(), bias_shift()};
}

}  // namespace attest::law
