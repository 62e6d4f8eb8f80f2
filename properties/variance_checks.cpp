#include "properties/variance_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/law/probe.hpp"
#include "properties/law/tally.hpp"

namespace attest::laws {

// The scores Z of different keys of one query are independent given the query, symmetric, and sums
// of independent terms. With signs: E exp(lZ) = prod cosh(l a_c) <= exp(l^2/2), E Z^2 = 1, E Z^4 <=
// 3. With normal keys rounded to the format, |k^| is within a factor 1 + u of |k|: E exp(lZ) <=
// exp(r l^2/2), E Z^2 >= 1/r, E Z^4 <= 3 r^2, where r = (1+u)^2.
//
// Upper tail: E exp(t Z^2) = E_g exp(sqrt(2t) g Z) <= (1 - 2tr)^(-1/2), so with t r = a/(2(1+a))
//   P(sum Z^2 >= N r (1+a)) <= exp(-N (a - log(1+a)) / 2).
// Lower tail: exp(-x) <= 1 - x + x^2/2 gives E exp(-t Z^2) <= exp(-t/r + 3 t^2 r^2 / 2); t = a/(3
// r^3)
//   P(sum Z^2 <= N (1-a)/r) <= exp(-N a^2 / (6 r^4)).
// Each is set to half the false positive rate. Errors e of the readings move the root of the sum of
// squares by at most |e| (triangle inequality).
Band band_of(const Sample& sample) {
    const double n = static_cast<double>(sample.count);
    const double need = std::log(2 / false_positive_rate) / n;
    const double r = (1 + sample.rounding) * (1 + sample.rounding);
    double above = 1;
    while ((above - std::log1p(above)) / 2 < need) above *= 2;
    for (double step = above / 2; step > 0x1p-20; step /= 2)
        if ((above - step - std::log1p(above - step)) / 2 >= need) above -= step;
    const double below = r * r * std::sqrt(6 * need);
    const double noise = std::sqrt(sample.noise_squares / n);
    const double low = below < 1 && sample.bounded ? std::sqrt((1 - below) / r) - noise : 0;
    const double high = std::sqrt(r * (1 + above)) + noise;
    return {low > 0 ? low * low : 0, high * high};
}

namespace {

/// How the inputs are drawn; `exponent`: every element of Q and of K is multiplied by 2^-exponent.
struct Draw {
    bool signs = true;
    int exponent = 0;
    std::uint64_t stream = 0;
};

double drawn(const Trial& trial, const Draw& draw, std::uint64_t stream, std::uint64_t index) {
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
Sample sample_scores(const Trial& trial, const Problem& problem, const Draw& draw,
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

    Sample sample;
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
                sample.noise_squares += 1.0001 * error * error;
                ++sample.count;
            }
        }
    return sample;
}

/// "variance 1", in units of what it should be, against its band.
Verdict judge_variance(const Problem& problem, const Sample& sample, double expected,
                       const std::string& unit) {
    if (!sample.usable) return not_applicable("the weights are too small to be told from zero");
    const Band band = band_of(sample);
    const double mean = sample.squares / static_cast<double>(sample.count);
    const double room = mean < 1 ? 1 - band.low : band.high - 1;
    Statistic statistic{"relative deviation of the variance of the scores", mean - 1, room,
                        false_positive_rate, sample.count};
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

}  // namespace

Verdict check_scaled(const Trial& trial) {
    const std::uint64_t stream = stream_of("variance.scaled");
    Problem problem = sampling_problem(trial.problem(), trial.problem().dim_qk);
    problem.scale.reset();
    if (!trial.supports(problem)) return not_applicable("the kernel does not take so many keys");
    const Draw draw{draws_signs(trial, stream), 0, stream + 1};
    // The default scale is 1/sqrt(D) rounded to f32, exact enough for any sample; taken as it is.
    const double deviation =
        effective_scale(problem) * std::sqrt(static_cast<double>(problem.dim_qk));
    return judge_variance(problem, sample_scores(trial, problem, draw, deviation), 1, "");
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
    const Draw draw{draws_signs(trial, stream), exponent, stream + 1};
    const double deviation = std::ldexp(std::sqrt(dim), -2 * exponent);
    return judge_variance(problem, sample_scores(trial, problem, draw, deviation), dim,
                          " and scale 1");
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
    Sample samples[2];
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
    const Band first = band_of(samples[0]), second = band_of(samples[1]);
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
            "the variance of the scores drifts from {:.3g} at head_dim {} to "
            "{:.3g} at {}",
            mean[0], problems[0]->dim_qk, mean[1], problems[1]->dim_qk);
        v.index = {0, 0, 0, 0};
        v.element_name = "ratio of two variances";
        v.expected = 1;
        v.observed = ratio;
        v.bound = room;
        v.bound_kind = BoundKind::statistic;
        v.ratio = std::abs(ratio - 1) / room;
        verdict = violated(std::move(v), count);
    }
    verdict.statistic = Statistic{"drift of the variance of the scores", ratio - 1, room,
                                  2 * false_positive_rate, count};
    return verdict;
}

}  // namespace attest::laws
