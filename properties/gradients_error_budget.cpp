// What the errors of gradients add up to over many heads: whether they lean in a direction in which
// wrong backwards err.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "properties/law/error_directions.hpp"
#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_run.hpp"
#include "properties/law/property.hpp"
#include "properties/law/reading.hpp"
#include "properties/law/statistics.hpp"
#include "reference/bound/kernel_model.hpp"

namespace attest::law {

namespace {

// reference/bound/README.md, Score tests, of gradients. A head's scores are one sample: heads are
// independent of one another, the rows of dK and dV of one head are not.
constexpr std::int64_t queries = 8;

/// What the gradients would change by, per unit of wrongness.
struct GradientDirection {
    const char* words;
    std::vector<Role> roles;
    bool of_delta = false;  ///< by what delta takes off dS, not by themselves
};

const std::array<GradientDirection, 4>& directions() {
    static const std::array<GradientDirection, 4> all{{
        {"dQ is too large by {:.2g} of itself", {Role::d_q}},
        {"dK is too large by {:.2g} of itself", {Role::d_k}},
        {"dV is too large by {:.2g} of itself", {Role::d_v}},
        {"delta is too large by {:.2g} of itself", {Role::d_q, Role::d_k}, true},
    }};
    return all;
}

/// What the law compares: a call of backward beside the truth, and beside what delta adds to it.
struct BudgetedRun {
    const GradientRun& call;
    bound::ExpectedGradients of_delta;
};

// dS = P (dP - D + dLSE): gradients of dO = 0 and dLSE = -D are what D takes off. D may be rounded
// to the format of dLSE here: it is a direction.
bound::ExpectedGradients gradients_of_delta(const Trial& trial, Problem problem, TensorSet inputs) {
    const bound::Expected forward = trial.expected(problem, inputs);
    problem.lse_grad = true;
    Tensor d_lse(type_of(problem, Role::d_lse), shape_of(problem, Role::d_lse).value());
    Tensor& d_o = inputs[Role::d_o];
    const std::int64_t width = value_dim(problem);
    for (std::int64_t row = 0; row < d_lse.size(); ++row) {
        double d = 0;
        for (std::int64_t c = row * width; c < (row + 1) * width; ++c) {
            d += d_o.get(c) * forward.output[static_cast<std::size_t>(c)].value;
            d_o.set(c, 0);
        }
        d_lse.set(row, -d);
    }
    inputs.put(Role::d_lse, std::move(d_lse));
    return trial.expected_gradients(problem, inputs);
}

/// Of one gradient the elements [first, end), which are all of one head.
std::int64_t add_elements(DirectionSum& sum, const BudgetedRun& run, bool of_delta, Role role,
                          std::size_t first, std::size_t end) {
    const FormatTraits format = traits(gradient_format(run.call.problem(), role));
    const double least = std::ldexp(1.0, format.exponent_min);
    std::int64_t elements = 0;
    for (std::size_t n = first; n < end; ++n) {
        const auto flat = static_cast<std::int64_t>(n);
        const bound::ExpectedElement& e = run.call.expected(role, flat);
        // A scale for the errors, which any number may be: the bound and the last rounding.
        const double scale =
            e.bound + 2 * format.unit_roundoff * std::max(std::abs(e.value), least);
        if (!(scale < infinite)) continue;
        sum.add((run.call.gradients()[role].get(flat) - e.value) / scale,
                (of_delta ? run.of_delta[role][n].value : e.value) / scale);
        ++elements;
    }
    return elements;
}

std::int64_t add_heads(DirectionSum& sum, const BudgetedRun& run, const GradientDirection& d) {
    const Problem& p = run.call.problem();
    const auto heads = static_cast<std::size_t>(p.batch * p.heads_q);
    std::int64_t elements = 0;
    for (std::size_t head = 0; head < heads; ++head) {
        for (const Role role : d.roles) {
            const std::size_t width =
                static_cast<std::size_t>(run.call.gradients()[role].size()) / heads;
            elements += add_elements(sum, run, d.of_delta, role, head * width, (head + 1) * width);
        }
        sum.end_sample();
    }
    return elements;
}

// Below this a drift is within the declared numerics, which may err one way in a whole run. P is
// exp(S - L), whose constants (log2(e), the subtraction) may be off by 3 ua |S - L|, and |S - L| is
// log n on average, 4 deviations of a normal score from it for all but one in 10^4 pairs; the four
// constants of a score and the scale of dQ and dK by 8 ua; D's quotient, its reciprocal and the
// conversion of the output by 2.5 ua of D, which is of the size of dP. exp may err by E one way.
double floor_of(const Problem& p, const bound::KernelModel& m) {
    return (3 * (std::log(static_cast<double>(p.len_kv)) + 4) + 8 + 2 * 2.5) * m.ua + m.exp_error;
}

Judgement judge_gradient_budget(const Trial& trial, const Problem& problem) {
    const std::uint64_t stream = stream_of("gradients.error_budget");
    TensorSet inputs = blank_inputs(problem);
    std::uint64_t index = 0;
    for (const Role role : {Role::q, Role::k, Role::v, Role::d_o})
        inputs.put(role, tensor_of(problem, role, [&](auto, auto, auto, auto) {
                       return trial.random_normal(stream, index++);
                   }));
    const GradientRun call(trial, problem, inputs);
    const BudgetedRun run{call, gradients_of_delta(trial, problem, inputs)};
    const double floor = floor_of(problem, bound::resolve(problem, trial.numerics()));
    std::vector<TestedDirection> tested;
    std::int64_t elements = 0;
    for (const GradientDirection& d : directions()) {
        tested.push_back({.words = d.words, .tensor = d.roles.front(), .admitted = floor});
        elements += add_heads(tested.back().sum, run, d);
    }
    return judge_directions(tested, "errors of gradients along one direction", elements);
}

bool all_wanted(const Given& given, const Problem& problem) {
    const std::vector<Role> had = given.gradients_of(problem);
    return std::ranges::all_of(std::array{Role::d_q, Role::d_k, Role::d_v}, [&](Role role) {
        return std::ranges::find(had, role) != had.end();
    });
}

Plan check_gradient_budget(const Given& given) {
    const Numerics& n = given.numerics();
    if (const char* why = leaning_by_design(n)) return not_applicable(why);
    Problem problem = many_heads(given.problem(), queries);
    problem.want_grad = true;
    problem.want_lse = true;
    problem.lse_grad = false;
    problem = canonical(problem);
    if (n.flush_subnormals && problem.format_q == Precision::f16)
        return not_applicable("what is flushed in f16 errs towards zero, and not by chance");
    if (!given.supports(problem)) return not_taken(problem);
    if (!all_wanted(given, problem)) return not_applicable("some of dQ, dK and dV is not given");
    return [problem](const Trial& trial) { return judge_gradient_budget(trial, problem); };
}

// Whole heads of normal numbers, no mask. Against a kernel that computes in f64 no reference number
// in f64 is finer.
CaseSpace averaged_gradients() {
    return {.allow = FeatureSet(Feature::layout, Feature::lse, Feature::dim_v),
            .formats = {Precision::f32, Precision::f16, Precision::bf16},
            .kinds = {ValueKind::normal},
            .cost = 8,
            .len_max = 128,
            .dim_max = 64,
            .limited_because = "a hundred heads of every case are averaged over",
            .default_scale = true};
}

}  // namespace

std::vector<Property> gradients_error_budget() {
    return {{
        .id = "gradients.error_budget",
        .statement = "Over many heads errors of gradients lean in no direction in which wrong "
                     "backwards err.",
        .statement_short = "errors of gradients over many heads lean nowhere",
        .why =
            "Along a direction in which a wrong backward errs (dQ, dK or dV too large, delta off) "
            "the scores of independent heads have fair signs, so their self-normalised sum exceeds "
            "6 with probability 3e-8, whatever the sizes. Drifts that stay inside every single "
            "bound show here; the class is suspect.",
        .source = "Efron 1969; reference/bound/README.md, Score tests of gradients",
        .compares = Compares::statistic,
        .tells = Tells::truth,
        .needs = {.backward = true},
        .cases = averaged_gradients(),
        .cases_enough = 24,
        .check = check_gradient_budget,
        .turned_red_by = {planted::gradients_times(1.001), planted::deltas_times(1.01)},
        .knows_more = true,
    }};
}

}  // namespace attest::law
