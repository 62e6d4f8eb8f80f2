// What the errors of many rows add up to: whether they lean in a direction in which wrong kernels
// err.

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "properties/law/error_directions.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/statistics.hpp"
#include "reference/bound/kernel_model.hpp"

namespace attest::law {

namespace {

// reference/bound/README.md, Score tests. Each row's scores are one sample: rows are independent,
// the elements of a row are not. The rate of a direction is a theorem for errors that are as often
// positive as negative at their size.
constexpr std::int64_t queries = 4;

constexpr const char* words[bound::error_directions] = {
    "every output is too large by {:.2g} of itself",
    "the temperature is off by {:.2g}",
    "{:.2g} of the weight is spread evenly over all keys",
    "the weights are normalised by {:.2g} keys of score 0 too many",
};

// Below this a drift is within the declared numerics, which may err one way in a whole run. The
// four constants of a score make 4 ua at most, the quotient, its reciprocal and the conversion of
// the output 2.5 ua. An exp within E may err by any function of the score: what all weights share
// cancels, the deviation from their mean is at most E in root mean square, and the scores it lines
// up with have a deviation of about one.
double floor_of(const bound::ErrorBudget& budget, double exp_error) {
    return 6.5 * budget.ua + exp_error;
}

struct ErrorScores {
    std::int64_t elements = 0;
    std::array<DirectionSum, bound::error_directions> direction;
    std::array<std::array<double, bound::error_directions>, bound::error_directions> product{};

    void add_row(std::span<const bound::BudgetElement> expected, const Run& call, const Row& row) {
        std::int64_t c = 0;
        for (const bound::BudgetElement& e : expected) {
            const double z = (output(call, row, c++) - e.value) / e.sigma;
            for (std::size_t k = 0; k < bound::error_directions; ++k) {
                const double unit = e.direction[k] / e.sigma;
                direction[k].add(z, unit);
                for (std::size_t other = 0; other < bound::error_directions; ++other)
                    product[k][other] += unit * e.direction[other] / e.sigma;
            }
        }
        for (DirectionSum& sum : direction) sum.end_sample();
        elements += static_cast<std::int64_t>(expected.size());
    }

    /// What a drift of `floor` along every direction adds up to along one: they are not orthogonal.
    double admitted(std::size_t k, double floor) const {
        double sum = 0;
        for (std::size_t j = 0; j < bound::error_directions; ++j) sum += std::abs(product[j][k]);
        return product[k][k] > 0 ? floor * sum / product[k][k] : 0;
    }

    Judgement judge(double floor) const {
        std::vector<TestedDirection> tested;
        for (std::size_t k = 0; k < bound::error_directions; ++k)
            tested.push_back(
                {.words = words[k], .sum = direction[k], .admitted = admitted(k, floor)});
        return judge_directions(tested, "errors along one direction", elements);
    }
};

Judgement judge_error_budget(const Trial& trial, const Problem& problem) {
    const std::uint64_t stream = stream_of("reference.error_budget");
    TensorSet inputs = blank_inputs(problem);
    std::uint64_t index = 0;
    for (const Role role : {Role::q, Role::k, Role::v})
        inputs.put(role, tensor_of(problem, role, [&](auto, auto, auto, auto) {
                       return trial.random_normal(stream, index++);
                   }));
    const Run call(trial, problem, inputs);
    const bound::ErrorBudget budget = trial.error_budget(problem, inputs);
    const auto width = static_cast<std::size_t>(value_dim(problem));
    ErrorScores scores;
    std::size_t at = 0;
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            for (std::int64_t i = 0; i < problem.len_q; ++i, at += width)
                scores.add_row({budget.output.data() + at, width}, call, {b, h, i});
    const double exp_error = bound::resolve(problem, trial.numerics()).exp_error;
    return scores.judge(floor_of(budget, exp_error));
}

/// Weights of many keys are subnormal in f16.
bool narrow(const Problem& p) {
    const Precision f16 = Precision::f16;
    return p.format_q == f16 || p.format_kv == f16 || p.format_o == f16;
}

/// In a format of more exponents instead, if the kernel takes one.
bool widen(const Given& given, Problem& problem) {
    for (const Precision format : {Precision::bf16, Precision::f32}) {
        problem.format_q = problem.format_kv = problem.format_o = format;
        if (given.supports(problem)) return true;
    }
    return false;
}

Plan check_error_budget(const Given& given) {
    if (const char* why = leaning_by_design(given.numerics())) return not_applicable(why);
    Problem problem = canonical(many_heads(given.problem(), queries));
    if (given.numerics().flush_subnormals && narrow(problem) && !widen(given, problem))
        return not_applicable("what is flushed in f16 errs towards zero, and not by chance");
    if (!given.supports(problem)) return not_taken(problem);
    return [problem](const Trial& trial) { return judge_error_budget(trial, problem); };
}

// What the averages are taken over: whole heads of normal numbers, no mask. Against a kernel that
// computes in f64 no reference number in f64 is finer.
CaseSpace averaged_case() {
    return {.allow = FeatureSet(Feature::layout, Feature::lse, Feature::dim_v),
            .formats = {Precision::f32, Precision::f16, Precision::bf16},
            .kinds = {ValueKind::normal},
            .cost = 4,
            .len_max = 300,
            .dim_max = 128,
            .limited_because = "a hundred heads of every case are averaged over",
            .default_scale = true};
}

Property error_budget() {
    return {
        .id = "reference.error_budget",
        .statement = "Over many rows errors lean in no direction in which wrong kernels err.",
        .statement_short = "errors over many rows lean nowhere",
        .why =
            "Along a direction in which a wrong kernel errs (gain, temperature, an even share "
            "of weight, a key of score zero) the scores of independent rows have fair signs, so "
            "their self-normalised sum exceeds 6 with probability 3e-8. Biases that stay inside "
            "every single bound show here; the class is suspect.",
        .source = "Efron 1969; reference/bound/README.md, Error budget and Score tests",
        .compares = Compares::statistic,
        .tells = Tells::truth,
        .cases = averaged_case(),
        .cases_enough = 24,
        .check = check_error_budget,
        .turned_red_by = {planted::answers_times(1.001)},
        .knows_more = true,
    };
}

}  // namespace

std::vector<Property> reference_error_budget() {
    return {error_budget()};
}

}  // namespace attest::law
