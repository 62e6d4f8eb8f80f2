#include "properties/reference_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/statistics.hpp"
#include "properties/law/tally.hpp"
#include "reference/bound/kernel_model.hpp"
#include "reference/bound/rounding.hpp"

namespace attest::laws {

Verdict check_structure(const Trial& trial) {
    return trial.compare_structure();
}

// One element in a thousand runs of a billion elements: the union bound over a case's elements.
constexpr double probable_rate = 1e-9;

constexpr const char* truncated = "sums of a matrix unit are truncated: their errors do not cancel";

Verdict check_probable(const Trial& trial) {
    if (trial.numerics().matrix_unit) return not_applicable(truncated);
    Verdict verdict = trial.compare_probable(probable_rate);
    verdict.statistic = Statistic{"error over the probable bound", verdict.worst_ratio, 1,
                                  probable_rate, verdict.elements};
    return verdict;
}

constexpr double of_libraries = 2;  ///< ulp of an exp whose exp(0) is 1

// With every key zero all scores are zero and every weight is exp(0) = 1 (or 1/n, a power of two).
// Values are whole numbers, n of them a power of two: sums below 2^24 are exact in any order, so is
// their quotient by n, and one rounding is left, that to the output format. Splits merged by their
// LSE would round log n: the law asks for none, and kernels that split by themselves declare it by
// merging exactly.
//
// An exp declared coarser than a library's may be off at 0 too: each weight is 1 + e, |e| <= E, and
// no sum is exact. Numerator and denominator are off by E + g of the sum of sizes, g that of the
// n + 6 roundings on the way, the weights' own too where E may show in them: so the mean is off by
// at most 2.1 (E + up + g) mean |v|, and anything that rounds from there agrees.
double mean_slack(const KernelModel& m, const Numerics& numerics, double keys) {
    if (numerics.exp_ulp <= of_libraries) return 0;
    const double up = m.exp_error < m.up / 2 ? 0 : m.up;
    return 2.1 * (m.exp_error + up + chain_error(m.sum_depth(keys) + 6, m.ua));
}

Verdict check_rounding(const Trial& trial) {
    constexpr std::int64_t most = 255;
    const std::uint64_t stream = stream_of("reference.rounding");
    const std::int64_t keys = std::int64_t{1} << (1 + trial.random_below(stream, 0, 7));
    Problem problem =
        plain(trial.problem(), std::min<std::int64_t>(trial.problem().len_q, 4), keys);
    problem.splits = 1;
    problem = canonical(problem);
    if (!trial.supports(problem)) problem.splits = 0;
    if (!trial.supports(problem)) return not_applicable("the kernel does not take so many keys");
    TensorSet inputs = blank_inputs(problem);
    std::uint64_t index = 0;
    inputs.put(Role::q, tensor_of(problem, Role::q, [&](auto, auto, auto, auto) {
                   return on_grid(trial, stream + 1, index++, 8, 8);
               }));
    inputs.put(Role::k, tensor_of(problem, Role::k, [](auto, auto, auto, auto) { return 0.0; }));
    inputs.put(Role::v, tensor_of(problem, Role::v, [&](auto, auto, auto, auto) {
                   return on_grid(trial, stream + 2, index++, most, 1);
               }));
    const Call call(trial, problem, inputs);
    const double count = static_cast<double>(keys);
    const double slack = mean_slack(resolve(problem, trial.numerics()), trial.numerics(), count);
    Tally tally(problem);
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            for (std::int64_t c = 0; c < value_dim(problem); ++c) {
                double sum = 0, size = 0;
                for (std::int64_t j = 0; j < keys; ++j) {
                    const double v = inputs[Role::v].at(b, h / group_size(problem), j, c);
                    sum += v;
                    size += std::abs(v);
                }
                const double mean = sum / count, room = slack * size / count;
                const double expected = round_to(mean, problem.format_o);
                const double low = round_to(mean - room, problem.format_o),
                             high = round_to(mean + room, problem.format_o);
                for (std::int64_t i = 0; i < problem.len_q; ++i) {
                    const Row row{b, h, i};
                    const double observed = output(call, row, c);
                    if (!tally.fact(low <= observed && observed <= high, expected, observed,
                                    output_at(row, c), [] {
                                        return std::string(
                                            "a mean that is known exactly is not rounded to the "
                                            "nearest output");
                                    }))
                        break;
                }
            }
    Verdict verdict = tally.verdict("nothing was compared");
    if (verdict.violation) verdict.violation->violation_class = ViolationClass::structure;
    return verdict;
}

namespace {

// numerics.md C.4. Each row's scores are one sample: rows are independent, the elements of a row
// are not. The thresholds are those measured there, on 750 runs of correct kernels.
constexpr double score_max = 50;         // one element weighs no more than this
constexpr double direction_rate = 3e-8;  // of |Z| > 6.0, a direction: a theorem
constexpr double mean_square_max = 5;    // standard errors above the model
constexpr std::int64_t heads_wanted = 100, queries = 4;

constexpr const char* words[error_directions] = {
    "every output is too large by {:.2g} of itself",
    "the temperature is off by {:.2g}",
    "{:.2g} of the weight is spread evenly over all keys",
    "the weights are normalised by {:.2g} keys of score 0 too many",
};

// Below these a drift is within the declared numerics: the constants of the scale and the rounding
// of P have one sign in a whole run (numerics.md C.4).
std::array<double, error_directions> floors(const ErrorBudget& budget) {
    const double ua = budget.ua, up = budget.up;
    const double constants = 8 * ua;
    if (!(up > 0)) return {constants, constants, constants, std::max(constants, 1e-6)};
    return {0.1 * up, std::max(constants, 0.02 * up), 0.05 * up, 0.02 * up};
}

struct Scores {
    double squares = 0, fourths = 0, largest = 0;  // over rows: of mean z^2; over elements: |z|
    std::int64_t rows = 0, elements = 0;
    std::array<SelfNormalised, error_directions> direction;
    std::array<double, error_directions> along{};
    std::array<std::array<double, error_directions>, error_directions> product{};

    void add_row(std::span<const BudgetElement> expected, const Call& call, const Row& row) {
        double square = 0;
        std::array<double, error_directions> x{};
        std::int64_t c = 0;
        for (const BudgetElement& e : expected) {
            double z = (output(call, row, c++) - e.value) / e.sigma;
            if (!(std::abs(z) <= score_max)) z = z < 0 ? -score_max : score_max;
            largest = std::max(largest, std::abs(z));
            square += z * z;
            for (std::size_t k = 0; k < error_directions; ++k) {
                const double unit = e.direction[k] / e.sigma;
                x[k] += z * unit;
                for (std::size_t other = 0; other < error_directions; ++other)
                    product[k][other] += unit * e.direction[other] / e.sigma;
            }
        }
        const double mean = square / static_cast<double>(expected.size());
        squares += mean;
        fourths += mean * mean;
        for (std::size_t k = 0; k < error_directions; ++k) {
            direction[k].add(x[k]);
            along[k] += x[k];
        }
        ++rows;
        elements += static_cast<std::int64_t>(expected.size());
    }

    /// How far the errors drift along a direction, in units of it.
    double drift(std::size_t k) const { return product[k][k] > 0 ? along[k] / product[k][k] : 0; }

    /// What a drift of `floor` along every direction adds up to along one: they are not orthogonal.
    double admitted(std::size_t k, const std::array<double, error_directions>& floor) const {
        double sum = 0;
        for (std::size_t j = 0; j < error_directions; ++j)
            sum += floor[j] * std::abs(product[j][k]);
        return product[k][k] > 0 ? sum / product[k][k] : 0;
    }
};

Verdict suspected(std::string sentence, double observed, double threshold, std::int64_t elements) {
    Violation v;
    v.problem = std::move(sentence);
    v.index = {0, 0, 0, 0};
    v.element_name = "errors of the whole run";
    v.observed = observed;
    v.bound = threshold;
    v.bound_kind = BoundKind::statistic;
    v.violation_class = ViolationClass::suspect;
    v.ratio = std::abs(observed) / threshold;
    return violated(std::move(v), elements);
}

Verdict judge_directions(const Scores& scores, const ErrorBudget& budget) {
    const auto floor = floors(budget);
    const double direction_max = SelfNormalised::threshold(direction_rate);
    // Of those that are off the one that stands out most: a wrong temperature shows in the others.
    std::size_t most = 0;
    double theta = 0, largest = -1;
    bool any_off = false;
    for (std::size_t k = 0; k < error_directions; ++k) {
        const double z = std::abs(scores.direction[k].value());
        const double own = scores.drift(k);
        const bool off = !(z <= direction_max) && !(std::abs(own) <= scores.admitted(k, floor));
        if (any_off && !off) continue;
        if (off == any_off && z <= largest) continue;
        most = k;
        theta = own;
        largest = z;
        any_off = off;
    }
    const double z = scores.direction[most].value();
    Verdict verdict = any_off ? suspected(fmt::format(fmt::runtime(words[most]), theta), z,
                                          direction_max, scores.elements)
                              : holds(scores.elements);
    verdict.statistic =
        scores.direction[most].statistic("errors along one direction", direction_rate);
    return verdict;
}

// The model of single errors: exact where one rounding to a known format dominates, dependent on
// the order of the sums where the output is as fine as they are.
Verdict judge_sizes(const Scores& scores, bool coarse) {
    const double rms_max = coarse ? 1.10 : 1.30, largest_max = coarse ? 8 : 12;
    const double n = static_cast<double>(scores.rows);
    const double mean = scores.squares / n;
    const double deviation = std::sqrt(std::max(0.0, scores.fourths / n - mean * mean) / n);
    const double excess = (mean - rms_max * rms_max) / std::max(deviation, 1e-300);
    const double rms = std::sqrt(mean);
    if (!(excess <= mean_square_max) && !(rms <= rms_max))
        return suspected(fmt::format("errors are {:.3g} times the size that the declared numerics "
                                     "make them (root mean square)",
                                     rms),
                         rms, rms_max, scores.elements);
    if (!(scores.largest <= largest_max))
        return suspected(fmt::format("one error is {:.3g} standard deviations of what the declared "
                                     "numerics make",
                                     scores.largest),
                         scores.largest, largest_max, scores.elements);
    return holds(scores.elements);
}

}  // namespace

Verdict check_error_budget(const Trial& trial) {
    if (trial.numerics().matrix_unit) return not_applicable(truncated);
    if (trial.numerics().exp_ulp > of_libraries)
        return not_applicable("a coarse exp errs alike at like scores, and not by chance");
    const std::uint64_t stream = stream_of("reference.error_budget");
    Problem problem =
        plain(trial.problem(), queries, std::max<std::int64_t>(16, trial.problem().len_kv));
    problem.heads_q = problem.heads_kv;
    problem.batch = (heads_wanted + problem.heads_kv - 1) / problem.heads_kv;
    problem = canonical(problem);
    if (!trial.supports(problem)) return not_applicable("the kernel does not take so many heads");
    TensorSet inputs = blank_inputs(problem);
    std::uint64_t index = 0;
    for (const Role role : {Role::q, Role::k, Role::v})
        inputs.put(role, tensor_of(problem, role, [&](auto, auto, auto, auto) {
                       return trial.random_normal(stream, index++);
                   }));
    const Call call(trial, problem, inputs);
    const ErrorBudget budget = trial.error_budget(problem, inputs);
    const auto width = static_cast<std::size_t>(value_dim(problem));
    Scores scores;
    std::size_t at = 0;
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            for (std::int64_t i = 0; i < problem.len_q; ++i, at += width)
                scores.add_row({budget.output.data() + at, width}, call, {b, h, i});
    const bool coarse = traits(problem.format_o).unit_roundoff > 4 * budget.ua;
    Verdict sizes = judge_sizes(scores, coarse);
    Verdict directions = judge_directions(scores, budget);
    // A direction explains more than a size: it is told first.
    return directions.decision == Decision::violated ? directions : merge(directions, sizes);
}

}  // namespace attest::laws
