// Softmax is a competition: raising one score takes weight from all others by one common factor.
// The laws raise a score by a known amount through one channel of the keys, and read the weights
// before and after.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/probe.hpp"
#include "properties/law/property.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/tally.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

namespace {

std::uint64_t head_index(const Problem& problem, std::int64_t batch, std::int64_t head_kv) {
    return static_cast<std::uint64_t>(batch * problem.heads_kv + head_kv);
}

/// One channel is taken from the data: q holds 1 there for every query, so a number t in a key
/// raises all its scores by sigma t, exactly.
struct SpareChannel {
    std::int64_t channel = 0;
    double step = 0;  ///< t
    Interval rise;    ///< sigma t
};

SpareChannel spare_channel(const Trial& trial, const Problem& problem, std::uint64_t stream) {
    SpareChannel spare;
    spare.channel = trial.random_below(stream, 0, problem.dim_qk);
    const double size =
        0.5 + std::ldexp(static_cast<double>(trial.random_below(stream, 1, 80)), -5);
    const double wanted = (trial.random_bits(stream, 2) & 1) != 0 ? size : -size;
    const double scale = effective_scale(problem);
    spare.step = round_to(wanted / scale, problem.format_kv);
    spare.rise = Interval::exactly(scale) * Interval::exactly(spare.step);
    return spare;
}

void clear_channel(TensorSet& inputs, const Problem& problem, std::int64_t channel) {
    const auto replaced = [&](Role role, double x) {
        Tensor& tensor = inputs[role];
        for (std::int64_t at = channel; at < tensor.size(); at += problem.dim_qk) tensor.set(at, x);
    };
    replaced(Role::q, 1);
    replaced(Role::k, 0);
}

/// p e / (1 + p (e - 1)): increasing in p.
Interval raised(const Interval& p, const Interval& e) {
    const Interval one = Interval::exactly(1);
    const auto at = [&](double x) {
        const Interval point = Interval::exactly(x);
        return point * e / (one + point * (e - one));
    };
    return hull(at(p.lo), at(p.hi));
}

/// 1 / (1 + p (e - 1)): monotone in p.
Interval lowered(const Interval& p, const Interval& e) {
    const Interval one = Interval::exactly(1);
    const auto at = [&](double x) { return one / (one + Interval::exactly(x) * (e - one)); };
    return hull(at(p.lo), at(p.hi));
}

// Z' = Z + exp(S_j) (e^d - 1), so P'_j = P_j e^d / (1 + P_j (e^d - 1)) and every other P'_k = P_k /
// (1
// + P_j (e^d - 1)). Both sides are enclosed: the weights before and after within the bounds of the
// outputs that show them, and both expressions are monotone in P_j.
Judgement check_finite(const Trial& trial) {
    const Problem& problem = trial.problem();
    if (problem.len_kv == 0) return nothing_compared("there is no key");
    const std::uint64_t stream = stream_of("jacobian.finite");
    const SpareChannel spare = spare_channel(trial, problem, stream);
    if (!(std::abs(spare.step) < traits(Precision::f16).max_finite) || spare.step == 0)
        return nothing_compared("the scale is too small for one key channel to raise a score");
    std::vector<std::vector<std::int64_t>> orders;
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            orders.push_back(
                permutation(trial, stream + 2 + head_index(problem, b, g), problem.len_kv));
    const auto key_of = [&](std::int64_t b, std::int64_t g, std::int64_t c) {
        return c < problem.len_kv ? orders[head_index(problem, b, g)][static_cast<std::size_t>(c)]
                                  : std::int64_t{-1};
    };
    const UnitColumns units = unit_columns(trial, problem, stream + 1, key_of);
    TensorSet inputs = trial.inputs();
    clear_channel(inputs, problem, spare.channel);
    const UnitRun before = run_units(trial, problem, inputs, stream, units);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g)
            inputs[Role::k].put(b, g, key_of(b, g, 0), spare.channel, spare.step);
    const UnitRun after = run_units(trial, problem, inputs, stream, units);

    const Interval e = exp(spare.rise);
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (blind(before.call, row)) continue;
        const std::int64_t g = row.head / group_size(problem);
        const Interval old = before.weight(row, 0);
        for (std::int64_t c = 0; c < std::min(value_dim(problem), problem.len_kv); ++c) {
            const Interval weight = before.weight(row, c);
            const Interval wanted = c == 0 ? raised(old, e) : weight * lowered(old, e);
            tally.same(wanted, after.weight(row, c), output_at(row, c), [&] {
                return fmt::format(
                    "key {} scores {:.3g} more for {}; the weight of key {} does not follow",
                    key_of(row.batch, g, 0), spare.rise.mid(), name_of(problem, row),
                    key_of(row.batch, g, c));
            });
        }
    }
    return tally.judgement(nothing_visible);
}

/// Channels stay what they are: no rotation, no cap.
CaseSpace finite_space() {
    return {.allow = FeatureSet::all()
                         .without(Feature::dropout)
                         .without(Feature::softcap)
                         .without(Feature::rope),
            .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat,
                      ValueKind::ties, ValueKind::one_hot, ValueKind::logit50},
            .cost = 8};
}

Property finite() {
    return {
        .id = "jacobian.finite",
        .statement = "Raising one score moves its weight, and scales all others by one factor.",
        .statement_short = "raising one score scales all other weights alike",
        .why =
            "With S_j raised by d the sum of exponentials grows by exp(S_j) (e^d - 1). So P'_j = "
            "P_j e^d / (1 + P_j (e^d - 1)), and P'_k / P_k = 1 / (1 + P_j (e^d - 1)) for every "
            "other k, hidden keys and sinks included. Its derivative at d = 0 is the Jacobian a_i "
            "(1[i=j] - a_j). Both runs are read within their bounds.",
        .source = "the softmax Jacobian diag(a) - a a^T, in finite form",
        .compares = Compares::bound,
        .cases = finite_space(),
        .check = always<check_finite>,
        .turned_red_by = {planted::scores_capped(1)},
    };
}

/// Channel 0 of the keys makes logits like [50, 1, 1, 1], one hot key a head; the other channels
/// add noise of about 1/16 sqrt(D) to them.
TensorSet saturated_inputs(const Trial& trial, const Problem& problem, std::uint64_t stream) {
    const double scale = effective_scale(problem);
    TensorSet inputs = blank_inputs(problem);
    inputs.put(Role::v, trial.inputs()[Role::v]);
    std::uint64_t index = 0;
    const auto noise = [&](std::uint64_t of) { return trial.random_normal(of, index++) / 4; };
    const auto query = [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t c) {
        return c == 0 ? 1.0 : noise(stream);
    };
    const auto key = [&](std::int64_t b, std::int64_t g, std::int64_t t, std::int64_t c) {
        if (c > 0) return noise(stream + 1);
        const std::int64_t hot =
            trial.random_below(stream + 2, head_index(problem, b, g), problem.len_kv);
        return (t == hot ? 50.0 : 1.0) / scale;
    };
    inputs.put(Role::q, tensor_of(problem, Role::q, query));
    inputs.put(Role::k, tensor_of(problem, Role::k, key));
    return inputs;
}

// With a gap of g_j between the hot score and that of key j the weights of all others sum to at
// most rho = sum_j exp(-g_j), so |O_c - v_hot,c| <= rho max_j |v_jc - v_hot,c|. The entries a_i
// (1[i=j] - a_j) of the Jacobian are at most rho: the second run raises another score by one, and
// nothing moves beyond that.
void compare_saturated(Tally& tally, const Run& call) {
    const Problem& problem = call.problem();
    const Scores scores(problem, call.inputs());
    const Tensor& values = call.inputs()[Role::v];
    for (const Row& row : all_rows(problem)) {
        const std::int64_t g = row.head / group_size(problem);
        std::vector<Interval> score;
        for (std::int64_t j = 0; j < problem.len_kv; ++j) score.push_back(scores.score(row, j));
        const auto hottest = std::max_element(score.begin(), score.end(),
                                              [](auto& a, auto& b) { return a.lo < b.lo; });
        const std::int64_t hot = hottest - score.begin();
        double rest = 0;
        for (std::int64_t j = 0; j < problem.len_kv; ++j)
            if (j != hot) rest += exp(score[static_cast<std::size_t>(j)] - *hottest).hi;
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            const double value = values.at(row.batch, g, hot, c);
            double reach = 0;
            for (std::int64_t j = 0; j < problem.len_kv; ++j)
                reach = std::max(reach, std::abs(values.at(row.batch, g, j, c) - value));
            const bound::ExpectedElement expected{value, evaluation * rest * reach,
                                                  element(call, row, c).bound};
            tally.element(output(call, row, c), expected, problem.format_o, output_at(row, c), [&] {
                return fmt::format(
                    "key {} scores {:.0f} above all others for {}, and the output is not its value",
                    hot, -std::log(rest), name_of(problem, row));
            });
        }
    }
}

Problem unmasked(const Given& given) {
    const Problem& tried = given.problem();
    return plain(tried, tried.len_q, tried.len_kv);
}

Judgement judge_saturation(const Trial& trial) {
    const Problem problem = unmasked(trial);
    const double scale = effective_scale(problem);
    const std::uint64_t stream = stream_of("jacobian.saturation");
    TensorSet inputs = saturated_inputs(trial, problem, stream);
    Tally tally(problem);
    compare_saturated(tally, Run(trial, problem, inputs));
    Tensor& keys = inputs[Role::k];
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g) {
            const std::int64_t raised_key =
                trial.random_below(stream + 3, head_index(problem, b, g), problem.len_kv);
            keys.put(b, g, raised_key, 0, keys.at(b, g, raised_key, 0) + 1 / scale);
        }
    compare_saturated(tally, Run(trial, problem, std::move(inputs)));
    return tally.judgement("the numerics claim nothing for such scores");
}

Plan check_saturation(const Given& given) {
    const Problem problem = unmasked(given);
    if (problem.len_kv < 2) return not_applicable("there are no two keys to compare");
    // The keys hold 50 / scale, which must be a number of f16, the narrowest format.
    if (!(50 / effective_scale(problem) < traits(Precision::f16).max_finite))
        return not_applicable("the scale is too small for saturated scores");
    if (!given.supports(problem))
        return not_applicable("the kernel does not take the case unmasked");
    return judge_saturation;
}

CaseSpace saturated_space() {
    return {.allow = FeatureSet(Feature::gqa, Feature::dim_v, Feature::layout, Feature::lse,
                                Feature::splits, Feature::mixed_formats, Feature::scale),
            .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int},
            .cost = 8};
}

Property saturation() {
    return {
        .id = "jacobian.saturation",
        .statement = "Scores like [50, 1, 1, 1] give one-hot weights that are finite and stay put.",
        .statement_short = "scores like [50,1,1,1] give one-hot, finite weights",
        .why =
            "The other weights sum to at most rho = sum exp(-gap), below 1e-18 here, so the output "
            "is the hot key's value within rho times the spread of the values. Entries of the "
            "Jacobian are at most rho as well: raising another score by one moves nothing. The "
            "scores are computed by the law, with a proven error.",
        .source = "Vaswani et al. 2017, section 3.2.1 (saturated softmax)",
        .compares = Compares::bound,
        .cases = saturated_space(),
        .check = check_saturation,
        .turned_red_by = {planted::scores_capped(4)},
    };
}

}  // namespace

std::vector<Property> jacobian() {
    return {finite(), saturation()};
}

}  // namespace attest::law
