// Temperature: dividing the scores by tau spreads the weights. The entropy of a row never falls as
// tau grows, at a rate that is the variance of the scores; its limits are the mean over the largest
// scores and the mean over all visible keys.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/probe.hpp"
#include "properties/law/property.hpp"
#include "properties/law/scores.hpp"
#include "properties/law/tally.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

namespace {

constexpr const char* every_weight =
    "every weight is read: the values have as many channels as there are keys";

/// H = -sum_j P_j log P_j over the visible keys.
Interval entropy_of(const Weights& weights, const Visibility& visibility, const Row& row,
                    std::int64_t keys) {
    Interval sum;
    for (std::int64_t j = 0; j < keys; ++j)
        if (visibility.sees(row, j)) sum = sum + entropy_term(weights.at(row, j));
    return sum;
}

TensorSet with_scaled_queries(const TensorSet& inputs, double factor) {
    TensorSet scaled = inputs;
    Tensor& q = scaled[Role::q];
    for (std::int64_t at = 0; at < q.size(); ++at) q.set(at, q.get(at) * factor);
    return scaled;
}

// dH/dtau = Var(s) / tau^3 >= 0. Twice the temperature: half the scale where the kernel takes one,
// else (or by the toss of a coin) half of every query element, exact away from the subnormals and
// what is judged in any case, since the law compares H of the two inputs as they are.
Plan check_monotone(const Given& given) {
    const Problem& problem = given.problem();
    const std::uint64_t stream = stream_of("entropy.monotone");
    Problem warmer = problem;
    TensorSet inputs = given.inputs();
    warmer.scale = effective_scale(problem) / 2;
    warmer = canonical(warmer);
    const bool by_scale = (given.random_bits(stream, 0) & 1) != 0 && given.supports(warmer);
    if (!by_scale) {
        warmer = problem;
        inputs = with_scaled_queries(inputs, 0.5);
        for (std::int64_t at = 0; at < inputs[Role::q].size(); ++at)
            if (2 * inputs[Role::q].get(at) != given.inputs()[Role::q].get(at))
                return not_applicable("halving a query element rounds it");
    }
    return [warmer, inputs, stream](const Trial& trial) -> Judgement {
        const Problem& cool = trial.problem();
        const Weights cold = WeightProbe(trial, cool, trial.inputs(), stream + 1).read(trial);
        const Weights warm = WeightProbe(trial, warmer, inputs, stream + 2).read(trial);
        const Visibility visibility(cool, trial.dialect(), trial.inputs());
        Tally tally(cool);
        for (const Row& row : all_rows(cool)) {
            if (visibility.visible_count(row) < 2) continue;
            const Interval before = entropy_of(cold, visibility, row, cool.len_kv);
            const Interval after = entropy_of(warm, visibility, row, cool.len_kv);
            tally.at_most(before, after, output_at(row, 0), [&] {
                return fmt::format(
                    "the entropy of the weights of {} falls from {:.4g} to {:.4g} as the "
                    "temperature doubles",
                    name_of(cool, row), before.mid(), after.mid());
            });
        }
        return tally.judgement("no query sees two keys");
    };
}

CaseSpace monotone_space() {
    return {
        .allow = scaled_alone,
        .kinds = {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat,
                  ValueKind::ties, ValueKind::logit50, ValueKind::ascending, ValueKind::one_hot},
        .cost = 32,
        .len_max = 64,
        .limited_because = every_weight};
}

/// Queries over the square of their size and the reciprocal of the scale: what should warm cools.
void cool_what_should_warm(Question& q) {
    Tensor& queries = q.inputs[Role::q];
    double most = 0;
    for (std::int64_t at = 0; at < queries.size(); ++at)
        most = std::max(most, std::abs(queries.get(at)));
    for (std::int64_t at = 0; at < queries.size() && most > 0; ++at)
        queries.set(at, queries.get(at) / (most * most));
    q.problem.scale = 1 / (4 * effective_scale(q.problem));
}

Property monotone() {
    return {
        .id = "entropy.monotone",
        .statement = "The entropy of a query's weights does not fall as temperature rises.",
        .statement_short = "the entropy of the weights grows with temperature",
        .why =
            "For P proportional to exp(s/tau), dH/dtau = Var(s)/tau^3 >= 0. Every weight is known "
            "within an interval, -x log x is enclosed on each, and the sums must not contradict "
            "H(2 tau) >= H(tau).",
        .source = "Jaynes 1957; derivative of the Gibbs entropy",
        .compares = Compares::bound,
        .cases = monotone_space(),
        .check = check_monotone,
        .turned_red_by = {{.id = "temperature_inverted", .asks = cool_what_should_warm}},
    };
}

/// The mean and the variance of log P under P, all enclosed. For any number a
///   Var(x) = E (x-a)^2 - (E x - a)^2,
/// and with a near the mean the last term is small: nothing is lost to the intervals.
Interval variance_of_logs(const Weights& weights, const Row& row, std::int64_t keys) {
    double a = 0;
    for (std::int64_t j = 0; j < keys; ++j)
        a += weights.at(row, j).mid() * log(weights.at(row, j)).mid();
    Interval squares, mean;
    for (std::int64_t j = 0; j < keys; ++j) {
        const Interval& p = weights.at(row, j);
        const Interval off = log(p) - Interval::exactly(a);
        squares = squares + p * square(off);
        mean = mean + p * off;
    }
    return squares - square(mean);
}

// With b = 1/tau, dH/db = -b Var_b(s) = -f(b). From log P_j = b s_j - log Z: f = Var(log P) / b.
// Between b = 1 and 1 + h the trapezium rule gives
//   H(1) - H(1+h) = h (f(1) + f(1+h)) / 2 +- h^3/12 max|f''|,   f'' = 2 k3 + b k4,
// where k3, k4 are cumulants of the scores under the weights. With r the range of the scores,
// |k3| <= r^3 sqrt(3)/18 and |k4| <= max(mu4, 3 Var^2) <= r^4/4 (mu4 <= r^2 Var <= r^4/4).
constexpr double cooling = 0.125;  // h

Judgement judge_derivative(const Weights& first, const Weights& second) {
    constexpr double h = cooling;
    const Problem& problem = first.first().problem();
    const Visibility visibility = first.first().visibility();
    const Scores scores(problem, first.first().inputs());
    Tally tally(problem);
    for (const Row& row : all_rows(problem)) {
        Interval range = scores.score(row, 0);
        for (std::int64_t j = 1; j < problem.len_kv; ++j) range = hull(range, scores.score(row, j));
        const double r = range.hi - range.lo;
        const double curvature = 2 * std::sqrt(3.0) / 18 * r * r * r + (1 + h) * r * r * r * r / 4;
        const Interval remainder = Interval::around(0, evaluation * h * h * h / 12 * curvature);
        const Interval slope =
            variance_of_logs(first, row, problem.len_kv) +
            variance_of_logs(second, row, problem.len_kv) / Interval::exactly(1 + h);
        const Interval wanted = slope * Interval::exactly(h / 2) + remainder;
        const Interval change = entropy_of(first, visibility, row, problem.len_kv) -
                                entropy_of(second, visibility, row, problem.len_kv);
        tally.same(wanted, change, output_at(row, 0), [&] {
            return fmt::format(
                "the entropy of the weights of {} changes by {:.4g} where the variance of the "
                "scores gives {:.4g}",
                name_of(problem, row), change.mid(), wanted.mid());
        });
    }
    return tally.judgement("there is no query");
}

Plan check_derivative(const Given& given) {
    const Problem& tried = given.problem();
    Problem problem = plain(tried, tried.len_q, std::clamp<std::int64_t>(tried.len_kv, 2, 16));
    problem.scale.reset();
    if (!given.supports(problem))
        return not_applicable("the kernel does not take the case unmasked");
    const std::uint64_t stream = stream_of("entropy.derivative");
    TensorSet inputs = blank_inputs(problem);
    // Var(q_c) = 4 2^-2e on either side: scores of standard deviation 1/2.
    inputs.put(Role::q, grid_tensor(given, problem, Role::q, stream, 3, 0.5));
    inputs.put(Role::k, grid_tensor(given, problem, Role::k, stream + 1, 3, 0.25));
    TensorSet colder = inputs;
    colder.put(Role::q, grid_tensor(given, problem, Role::q, stream, 3, 0.5 * (1 + cooling)));
    const auto first = std::make_shared<const WeightProbe>(given, problem, inputs, stream + 2);
    const auto second = std::make_shared<const WeightProbe>(given, problem, colder, stream + 3);
    if (!first->readable() || !second->readable()) return not_applicable(unreadable_weights);
    return [first, second](const Trial& trial) {
        return judge_derivative(first->read(trial), second->read(trial));
    };
}

CaseSpace derivative_space() {
    return {.allow = FeatureSet(Feature::gqa, Feature::dim_v, Feature::layout, Feature::lse,
                                Feature::splits, Feature::mixed_formats),
            .kinds = {ValueKind::normal},
            .cost = 32,
            .len_max = 32,
            .limited_because = every_weight,
            .default_scale = true};
}

Property derivative() {
    return {
        .id = "entropy.derivative",
        .statement = "The entropy changes with temperature at the rate Var(s)/tau^3.",
        .statement_short = "entropy changes by the variance of the scores",
        .why =
            "With b = 1/tau, dH/db = -b Var(s), and Var(s) = Var(log P)/b^2 is read off the "
            "weights themselves. Between b = 1 and 9/8 the trapezium rule gives the change of H "
            "with a remainder bounded by the range of the scores (cumulants of a bounded "
            "variable). Queries are whole numbers, so that 9/8 of them is exact.",
        .source = "dH/dtau = Var(s)/tau^3; trapezium rule with remainder",
        .compares = Compares::bound,
        .cases = derivative_space(),
        .check = check_derivative,
        .turned_red_by = {planted::scores_capped(0.25)},
    };
}

}  // namespace

std::vector<Property> entropy() {
    return {monotone(), derivative()};
}

}  // namespace attest::law
