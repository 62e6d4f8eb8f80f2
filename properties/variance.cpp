// Dividing the scores by sqrt(head_dim) makes their variance one, whatever the dimension. The laws
// draw inputs with known moments, read the scores off the weights and test their mean square. The
// test is exact for every sample size: a correct kernel fails a case with probability 1e-9 at most.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "properties/law/probe.hpp"
#include "properties/law/property.hpp"
#include "properties/law/tally.hpp"
#include "properties/law/variance_band.hpp"

namespace attest::law {

namespace {

/// How the inputs are drawn; `exponent`: every element of Q and of K is multiplied by 2^-exponent.
struct InputDraw {
    bool signs = true;
    int exponent = 0;
    std::uint64_t stream = 0;
};

double drawn(const Trial& trial, const InputDraw& draw, std::uint64_t stream, std::uint64_t index) {
    if (!draw.signs) return std::ldexp(trial.random_normal(stream, index), -draw.exponent);
    const std::uint64_t word = trial.random_bits(stream, index / 64);
    return std::ldexp((word >> index % 64 & 1) != 0 ? 1.0 : -1.0, -draw.exponent);
}

/// One query a head and 64 keys, one of them zero; enough sequences to make about 512 samples.
Problem sampling_problem(const Problem& from, std::int64_t dim) {
    constexpr std::int64_t samples = 512, keys = 64;
    Problem p = plain(from, 1, keys);
    p.batch = (samples + keys * p.heads_kv - 1) / (keys * p.heads_kv);
    p.dim_v = value_dim(from);
    p.dim_qk = dim;
    return canonical(p);
}

// One key of every head is zero: its score is 0, so log P_ij - log P_i0 = S_ij and no LSE is
// needed. Only the first query head of a group is read: heads of a group share their keys, and
// their scores are not independent.
ScoreSample sample_scores(const Trial& trial, const Problem& problem, const InputDraw& draw,
                          double deviation) {
    TensorSet inputs = blank_inputs(problem);
    const auto zero_key = [&](std::int64_t b, std::int64_t g) {
        const auto head = static_cast<std::uint64_t>(b * problem.heads_kv + g);
        return trial.random_below(draw.stream, head, problem.len_kv);
    };
    for (const Role role : {Role::q, Role::k}) {
        std::uint64_t index = 0;
        const std::uint64_t own = draw.stream + (role == Role::q ? 1 : 2);
        inputs.put(role,
                   tensor_of(problem, role,
                             [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t) {
                                 const double x = drawn(trial, draw, own, index++);
                                 return role == Role::k && t == zero_key(b, h) ? 0.0 : x;
                             }));
    }
    const Weights weights = Weights::read(trial, problem, inputs, draw.stream + 3);
    if (weights.fault()) throw Stopped{*weights.fault()};

    ScoreSample sample;
    sample.rounding = draw.signs ? 0 : traits(problem.format_kv).unit_roundoff;
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t g = 0; g < problem.heads_kv; ++g) {
            const Row row{b, g * group_size(problem), 0};
            double norm = 0;
            for (std::int64_t c = 0; c < problem.dim_qk; ++c) {
                const double q = std::ldexp(inputs[Role::q].at(b, row.head, 0, c), draw.exponent);
                norm += q * q;
            }
            // Given q_i the standard deviation is that of the law times |q_i| / sqrt(D).
            const double own = deviation * std::sqrt(norm / static_cast<double>(problem.dim_qk));
            const Interval zero = log(weights.at(row, zero_key(b, g)));
            for (std::int64_t j = 0; j < problem.len_kv; ++j) {
                if (j == zero_key(b, g)) continue;
                const Interval score = log(weights.at(row, j)) - zero;
                // A weight that may be zero has a score of at most `hi`, far below zero.
                const bool known = score.finite();
                sample.bounded = sample.bounded && known;
                sample.usable = sample.usable && (known || score.hi < 0);
                const double z = (known ? score.mid() : std::min(score.hi, 0.0)) / own;
                const double error = (known ? score.radius() : 0) / own;
                sample.squares += z * z;
                sample.noise_squares += evaluation * error * error;
                ++sample.count;
            }
        }
    return sample;
}

/// "variance 1", in units of what it should be, against its band.
Verdict judge_variance(const Problem& problem, const ScoreSample& sample, double expected,
                       const std::string& unit) {
    if (!sample.usable) return not_applicable("the weights are too small to be told from zero");
    const VarianceBand band = band_of(sample);
    const double mean = sample.squares / static_cast<double>(sample.count);
    const double room = mean < 1 ? 1 - band.low : band.high - 1;
    Statistic statistic{"relative deviation of the variance of the scores", mean - 1, room,
                        variance_rate, sample.count};
    Verdict verdict = holds(sample.count);
    if (!(mean >= band.low && mean <= band.high)) {
        Violation v;
        v.problem = fmt::format("scores of head_dim {}{} have variance {:.3g}; it should be {:.3g}",
                                problem.dim_qk, unit, mean * expected, expected);
        v.index = {0, 0, 0, 0};
        v.element_name = "variance of the scores";
        v.expected = expected;
        v.observed = mean * expected;
        v.bound = room * expected;
        v.bound_kind = BoundKind::statistic;
        v.ratio = std::abs(mean - 1) / room;
        verdict = violated(std::move(v), sample.count);
    }
    verdict.statistic = std::move(statistic);
    return verdict;
}

bool draws_signs(const Trial& trial, std::uint64_t stream) {
    return (trial.random_bits(stream, 0) & 1) != 0;
}

Verdict check_scaled(const Trial& trial) {
    const std::uint64_t stream = stream_of("variance.scaled");
    Problem problem = sampling_problem(trial.problem(), trial.problem().dim_qk);
    problem.scale.reset();
    if (!trial.supports(problem)) return not_applicable("the kernel does not take so many keys");
    const InputDraw draw{draws_signs(trial, stream), 0, stream + 1};
    // The default scale is 1/sqrt(D) rounded to f32, exact enough for any sample; taken as it is.
    const double deviation =
        effective_scale(problem) * std::sqrt(static_cast<double>(problem.dim_qk));
    return judge_variance(problem, sample_scores(trial, problem, draw, deviation), 1, "");
}

CaseSpace space() {
    return {
        .allow = FeatureSet(Feature::gqa, Feature::layout, Feature::lse, Feature::dim_v,
                            Feature::splits, Feature::mixed_formats),
        .kinds = {ValueKind::normal},
        .cost = 64,
        .len_max = 32,
        .batch_max = 2,
        .limited_because = "its 512 scores are its own: of the case it takes heads and dimensions",
        .default_scale = true};
}

Property scaled() {
    return {
        .id = "variance.scaled",
        .statement = "Queries and keys of variance one give scores of variance one, for every D.",
        .statement_short = "scores of unit inputs have variance one",
        .why =
            "q.k is a sum of D products of variance one, so Var(q.k / sqrt(D)) = 1. Inputs are "
            "random signs or normal numbers; one key is zero, so log P_ij - log P_i0 = S_ij. Given "
            "the query the scores are independent sums with sub-Gaussian tails; Chernoff bounds on "
            "their mean square give a band that a correct kernel leaves with probability 1e-9.",
        .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
        .compares = Compares::statistic,
        .cases = space(),
        .check = check_scaled,
        .turned_red_by = {planted::scale_times(0.25)},
    };
}

// With sigma = 1 scores of unit inputs spread by sqrt(D), too far for weights to show: the inputs
// are made smaller by a power of two, 2^-e each, and the variance D 2^-4e is multiplied back.
Verdict check_unscaled(const Trial& trial) {
    const std::uint64_t stream = stream_of("variance.unscaled");
    Problem problem = sampling_problem(trial.problem(), trial.problem().dim_qk);
    problem.scale = 1;
    problem = canonical(problem);
    if (!trial.supports(problem)) return not_applicable("the kernel does not take scale 1");
    const double dim = static_cast<double>(problem.dim_qk);
    const int exponent = static_cast<int>(std::ceil(std::log2(dim) / 4));
    const InputDraw draw{draws_signs(trial, stream), exponent, stream + 1};
    const double deviation = std::ldexp(std::sqrt(dim), -2 * exponent);
    return judge_variance(problem, sample_scores(trial, problem, draw, deviation), dim,
                          " and scale 1");
}

CaseSpace unscaled_space() {
    CaseSpace s = space();
    s.allow = s.allow.with(Feature::scale);
    s.require = FeatureSet(Feature::scale);
    s.default_scale = false;
    return s;
}

Property unscaled() {
    return {
        .id = "variance.unscaled",
        .statement = "With scale 1, queries and keys of variance one give scores of variance D.",
        .statement_short = "with scale 1 the scores have variance head_dim",
        .why =
            "q.k is a sum of D uncorrelated products of mean 0 and variance 1. Inputs are made "
            "smaller by a power of two, exactly, so that the weights still show the scores; the "
            "band is that of variance.scaled.",
        .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
        .compares = Compares::statistic,
        .cases = unscaled_space(),
        .check = check_unscaled,
        .turned_red_by = {planted::scale_is(3)},
    };
}

// Two dimensions, each judged by its own band: if both means are within theirs, so is their ratio.
// What drifts with D (a scale of 1/D, of a padded or of the model's dimension) moves the ratio.
Verdict check_dimension_free(const Trial& trial) {
    constexpr std::int64_t dims[] = {8, 16, 32, 64, 128, 256};
    const std::uint64_t stream = stream_of("variance.dimension_free");
    std::vector<Problem> taken;
    for (const std::int64_t dim : dims) {
        Problem problem = sampling_problem(trial.problem(), dim);
        problem.scale.reset();
        if (trial.supports(problem)) taken.push_back(problem);
    }
    if (taken.size() < 2)
        return not_applicable("the kernel takes only one of the dimensions 8..256");
    const auto last = static_cast<std::int64_t>(taken.size()) - 1;
    const auto other = static_cast<std::size_t>(1 + trial.random_below(stream, 0, last));
    ScoreSample samples[2];
    double mean[2];
    const Problem* problems[2] = {&taken.front(), &taken[other]};
    for (std::size_t k = 0; k < 2; ++k) {
        const double deviation =
            effective_scale(*problems[k]) * std::sqrt(static_cast<double>(problems[k]->dim_qk));
        samples[k] =
            sample_scores(trial, *problems[k], {true, 0, stream + 16 * (k + 1)}, deviation);
        if (!samples[k].usable)
            return not_applicable("the weights are too small to be told from zero");
        mean[k] = samples[k].squares / static_cast<double>(samples[k].count);
    }
    const VarianceBand first = band_of(samples[0]), second = band_of(samples[1]);
    const double ratio = mean[1] / mean[0];
    const std::int64_t count = samples[0].count + samples[1].count;
    const bool low = !(ratio * first.high >= second.low);
    const bool high = !(ratio * first.low <= second.high);
    const double room = ratio < 1 ? 1 - second.low / first.high
                                  : (first.low > 0 ? second.high / first.low - 1 : ratio);
    Verdict verdict = holds(count);
    if (low || high) {
        Violation v;
        v.problem = fmt::format(
            "the variance of the scores drifts from {:.3g} at head_dim {} to {:.3g} at {}", mean[0],
            problems[0]->dim_qk, mean[1], problems[1]->dim_qk);
        v.index = {0, 0, 0, 0};
        v.element_name = "ratio of two variances";
        v.expected = 1;
        v.observed = ratio;
        v.bound = room;
        v.bound_kind = BoundKind::statistic;
        v.ratio = std::abs(ratio - 1) / room;
        verdict = violated(std::move(v), count);
    }
    verdict.statistic =
        Statistic{"drift of the variance of the scores", ratio - 1, room, 2 * variance_rate, count};
    return verdict;
}

void scale_one_over_dim(Question& q) {
    q.problem.scale = 1 / static_cast<double>(q.problem.dim_qk);
}

Property dimension_free() {
    return {
        .id = "variance.dimension_free",
        .statement = "The variance of the scores does not drift with the head dimension.",
        .statement_short = "the variance of the scores is the same for every D",
        .why =
            "Var(S) = 1 for D = 8 and for any other D, so the ratio of two estimates is one within "
            "their two bands. Scales of 1/D, of a padded head dimension or of the whole model's "
            "dimension drift with D.",
        .source = "Vaswani et al. 2017, section 3.2.1, footnote 4",
        .compares = Compares::statistic,
        .cases = space(),
        .check = check_dimension_free,
        .turned_red_by = {{.id = "scale_one_over_dim", .asks = scale_one_over_dim}},
    };
}

}  // namespace

std::vector<Property> variance() {
    return {scaled(), unscaled(), dimension_free()};
}

}  // namespace attest::law
