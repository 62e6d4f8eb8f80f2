#include "properties/entropy_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/law/hull_slack.hpp"
#include "properties/law/probe.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/sight.hpp"
#include "properties/law/tally.hpp"

namespace attest::laws {

namespace {

/// H = -sum_j P_j log P_j over the visible keys.
Interval entropy_of(const Weights& weights, const Sight& sight, const Row& row, std::int64_t keys) {
    Interval sum;
    for (std::int64_t j = 0; j < keys; ++j)
        if (sight.sees(row, j)) sum = sum + entropy_term(weights.at(row, j));
    return sum;
}

TensorSet with_scaled_queries(const TensorSet& inputs, double factor) {
    TensorSet scaled = inputs;
    Tensor& q = scaled[Role::q];
    for (std::int64_t at = 0; at < q.size(); ++at) q.set(at, q.get(at) * factor);
    return scaled;
}

}  // namespace

// dH/dtau = Var(s) / tau^3 >= 0. Twice the temperature: half the scale where the kernel takes one,
// else (or by the toss of a coin) half of every query element, exact away from the subnormals and
// what is judged in any case, since the law compares H of the two inputs as they are.
Verdict check_monotone(const Trial& trial) {
    const Problem& problem = trial.problem();
    const std::uint64_t stream = stream_of("entropy.monotone");
    Problem warmer = problem;
    TensorSet inputs = trial.inputs();
    warmer.scale = effective_scale(problem) / 2;
    warmer = canonical(warmer);
    const bool by_scale = (trial.random_bits(stream, 0) & 1) != 0 && trial.supports(warmer);
    if (!by_scale) {
        warmer = problem;
        inputs = with_scaled_queries(inputs, 0.5);
        for (std::int64_t at = 0; at < inputs[Role::q].size(); ++at)
            if (2 * inputs[Role::q].get(at) != trial.inputs()[Role::q].get(at))
                return not_applicable("halving a query element rounds it");
    }
    const Weights cold = Weights::read(trial, problem, trial.inputs(), stream + 1);
    if (cold.fault()) return *cold.fault();
    const Weights warm = Weights::read(trial, warmer, inputs, stream + 2);
    if (warm.fault()) return *warm.fault();
    const Sight sight(problem, trial.dialect(), trial.inputs());
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        if (sight.visible_count(row) < 2) continue;
        const Interval before = entropy_of(cold, sight, row, problem.len_kv);
        const Interval after = entropy_of(warm, sight, row, problem.len_kv);
        tally.at_most(before, after, output_at(row, 0), [&] {
            return fmt::format(
                "the entropy of the weights of {} falls from {:.4g} to {:.4g} as the "
                "temperature doubles",
                name_of(problem, row), before.mid(), after.mid());
        });
    }
    return tally.verdict("no query sees two keys");
}

namespace {

/// The mean and the variance of log P under P, all enclosed. For any number a
///   Var(x) = E (x-a)^2 - (E x - a)^2,
/// and with a near the mean the last term is small: nothing is lost to the intervals.
Interval variance_of_logs(const Weights& weights, const Row& row, std::int64_t keys) {
    double a = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
        const Interval x = log(weights.at(row, j));
        if (!x.finite()) return {0, std::numeric_limits<double>::infinity()};
        a += weights.at(row, j).mid() * x.mid();
    }
    Interval squares, mean;
    for (std::int64_t j = 0; j < keys; ++j) {
        const Interval& p = weights.at(row, j);
        const Interval off = log(p) - Interval::exactly(a);
        squares = squares + p * square(off);
        mean = mean + p * off;
    }
    return squares - square(mean);
}

/// Whole numbers from -3 to 3 over 2^exponent, times 9/8 for the second run: exact in every format.
Tensor whole_numbers(const Trial& trial, const Problem& problem, Role role, std::uint64_t stream,
                     int exponent, double factor) {
    std::uint64_t index = 0;
    return tensor_of(problem, role, [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
        return std::ldexp(on_grid(trial, stream, index++, 3, 1) * factor, -exponent);
    });
}

}  // namespace

// With b = 1/tau, dH/db = -b Var_b(s) = -f(b). From log P_j = b s_j - log Z: f = Var(log P) / b.
// Between b = 1 and 1 + h the trapezium rule gives
//   H(1) - H(1+h) = h (f(1) + f(1+h)) / 2 +- h^3/12 max|f''|,   f'' = 2 k3 + b k4,
// where k3, k4 are cumulants of the scores under the weights. With r the range of the scores,
// |k3| <= r^3 sqrt(3)/18 and |k4| <= max(mu4, 3 Var^2) <= r^4/4 (mu4 <= r^2 Var <= r^4/4).
Verdict check_derivative(const Trial& trial) {
    constexpr double h = 0.125;
    const Problem& subject = trial.problem();
    Problem problem =
        plain(subject, subject.len_q, std::clamp<std::int64_t>(subject.len_kv, 2, 16));
    problem.scale.reset();
    if (!trial.supports(problem))
        return not_applicable("the kernel does not take the case unmasked");
    const std::uint64_t stream = stream_of("entropy.derivative");
    TensorSet inputs = blank_inputs(problem);
    // Var(q_c) = 4 2^-2e on either side: scores of standard deviation 1/2.
    inputs.put(Role::q, whole_numbers(trial, problem, Role::q, stream, 1, 1));
    inputs.put(Role::k, whole_numbers(trial, problem, Role::k, stream + 1, 2, 1));
    TensorSet colder = inputs;
    colder.put(Role::q, whole_numbers(trial, problem, Role::q, stream, 1, 1 + h));
    const Weights first = Weights::read(trial, problem, inputs, stream + 2);
    if (first.fault()) return *first.fault();
    const Weights second = Weights::read(trial, problem, colder, stream + 3);
    if (second.fault()) return *second.fault();
    const Sight sight(problem, trial.dialect(), inputs);
    const Scores scores(problem, inputs);
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        Interval range = scores.score(row, 0);
        for (std::int64_t j = 1; j < problem.len_kv; ++j) range = hull(range, scores.score(row, j));
        const double r = range.hi - range.lo;
        const double curvature = 2 * std::sqrt(3.0) / 18 * r * r * r + (1 + h) * r * r * r * r / 4;
        const Interval remainder = Interval::around(0, 1.0001 * h * h * h / 12 * curvature);
        const Interval slope =
            variance_of_logs(first, row, problem.len_kv) +
            variance_of_logs(second, row, problem.len_kv) / Interval::exactly(1 + h);
        const Interval wanted = slope * Interval::exactly(h / 2) + remainder;
        const Interval change = entropy_of(first, sight, row, problem.len_kv) -
                                entropy_of(second, sight, row, problem.len_kv);
        if (!wanted.finite()) continue;
        tally.same(wanted, change, output_at(row, 0), [&] {
            return fmt::format(
                "the entropy of the weights of {} changes by {:.4g} where the "
                "variance of the scores gives {:.4g}",
                name_of(problem, row), change.mid(), wanted.mid());
        });
    }
    return tally.verdict("the weights are too small to be told from zero");
}

namespace {

/// The mean of a value over some keys, enclosed.
ExpectedElement mean_of(const Tensor& values, const Row& row, std::int64_t head_kv,
                        const std::vector<std::int64_t>& keys, std::int64_t channel) {
    double sum = 0, magnitude = 0;
    for (const std::int64_t j : keys) {
        const double v = values.at(row.batch, head_kv, j, channel);
        sum += v;
        magnitude += std::abs(v);
    }
    const double n = static_cast<double>(keys.size());
    return {sum / n, (n + 2) * 0x1p-53 * magnitude / n, 0};
}

double spread_of(const Tensor& values, const Row& row, std::int64_t head_kv,
                 const std::vector<std::int64_t>& keys, std::int64_t channel) {
    double low = values.at(row.batch, head_kv, keys[0], channel), high = low;
    for (const std::int64_t j : keys) {
        low = std::min(low, values.at(row.batch, head_kv, j, channel));
        high = std::max(high, values.at(row.batch, head_kv, j, channel));
    }
    return high - low;
}

/// The rows of a call against the mean over `chosen` keys of theirs; the weights of the row differ
/// from uniform ones over those keys by at most `off` in sum.
template <typename Choose>
void compare_means(Tally& tally, const Call& call, const char* which, Choose&& choose) {
    const Problem& problem = call.problem();
    const Sight sight = call.sight();
    const Tensor& values = call.inputs()[Role::v];
    for (const Row& row : all_rows(problem)) {
        const std::int64_t g = row.head / group_size(problem);
        std::vector<std::int64_t> visible;
        for (std::int64_t j = 0; j < problem.len_kv; ++j)
            if (sight.sees(row, j)) visible.push_back(j);
        if (visible.empty()) continue;
        double off = 0;
        const std::vector<std::int64_t> chosen = choose(row, visible, off);
        for (std::int64_t c = 0; c < value_dim(problem); ++c) {
            ExpectedElement mean = mean_of(values, row, g, chosen, c);
            mean.error += 1.0001 * off * spread_of(values, row, g, visible, c);
            mean.bound = element(call, row, c).bound;
            tally.element(output(call, row, c), mean, problem.format_o, output_at(row, c), [&] {
                return fmt::format("the output of {} is not the mean over the {}",
                                   name_of(problem, row), which);
            });
        }
    }
}

}  // namespace

// Hot: all scores within e of each other, so n P_j lies between exp(-2e) and exp(2e); the weights
// miss uniform ones by expm1(2e) in sum. Cold: scores are whole numbers times g; the keys with the
// largest have equal scores, all others lose at least g: their weights sum to at most n exp(-g).
Verdict check_limits(const Trial& trial) {
    Problem problem = trial.problem();
    problem.scale.reset();
    problem = canonical(problem);
    if (!trial.supports(problem))
        return not_applicable("the kernel does not take its default scale");
    const std::uint64_t stream = stream_of("entropy.limits");
    Tally tally(problem);

    TensorSet hot = trial.inputs();
    const int tiny = problem.format_q == Precision::f16 ? -20 : -60;
    std::uint64_t index = 0;
    hot.put(Role::q, tensor_of(problem, Role::q,
                               [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
                                   return std::ldexp(trial.random_normal(stream, index++), tiny);
                               }));
    const ScoreBounds small(problem, hot);
    compare_means(tally, Call(trial, problem, hot), "keys it sees, at equal scores",
                  [&](const Row& row, const std::vector<std::int64_t>& visible, double& off) {
                      off = std::expm1(2 * small.of(row));
                      return visible;
                  });

    TensorSet cold = trial.inputs();
    const double scale = effective_scale(problem);
    const int large = static_cast<int>(std::ceil(std::log2(40 / scale)));
    cold.put(Role::q, whole_numbers(trial, problem, Role::q, stream + 1, -large, 1));
    cold.put(Role::k, whole_numbers(trial, problem, Role::k, stream + 2, 0, 1));
    const Scores scores(problem, cold);
    compare_means(tally, Call(trial, problem, cold), "keys that score highest",
                  [&](const Row& row, const std::vector<std::int64_t>& visible, double& off) {
                      // Whole numbers times a power of two: the sums are exact.
                      double most = scores.sum(row, visible[0]);
                      for (const std::int64_t j : visible)
                          most = std::max(most, scores.sum(row, j));
                      std::vector<std::int64_t> best;
                      for (const std::int64_t j : visible)
                          if (scores.sum(row, j) == most) best.push_back(j);
                      off =
                          static_cast<double>(visible.size()) * std::exp(-std::ldexp(scale, large));
                      return best;
                  });
    return tally.verdict("no query sees a key");
}

}  // namespace attest::laws
