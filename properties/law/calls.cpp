#include "properties/law/calls.hpp"

#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"
#include "reference/problem/validity.hpp"

namespace attest::law {

Run::Run(const Trial& trial)
    : PlannedCall(trial, trial.problem(), trial.inputs()),
      trial_(&trial),
      outputs_(trial.observed()) {}

Run::Run(const Trial& trial, Problem problem, TensorSet inputs)
    : Run(trial, PlannedCall(trial, std::move(problem), std::move(inputs))) {}

Run::Run(const Trial& trial, PlannedCall call)
    : PlannedCall(std::move(call)), trial_(&trial), outputs_(trial.run(problem(), inputs())) {}

Run Run::alone() const {
    Run call = *this;
    call.outputs_ = trial_->run_alone(problem(), inputs());
    return call;
}

const bound::Expected& PlannedCall::expected() const {
    if (!expected_) expected_ = given_->expected(problem_, inputs_);
    return *expected_;
}

Precision PlannedCall::output_format() const {
    const Precision stored = problem_.format_o;
    const Precision declared = resolved(given_->numerics().output, stored);
    // Rounded to the coarser of the two: the finer one then holds the result exactly.
    return traits(declared).significand_bits < traits(stored).significand_bits ? declared : stored;
}

Precision PlannedCall::lse_format() const {
    return problem_.format_q == Precision::f64 ? Precision::f64 : Precision::f32;
}

std::optional<Run> run_if_supported(const Trial& trial, const Problem& problem, TensorSet inputs) {
    if (!trial.supports(problem)) return std::nullopt;
    return Run(trial, problem, std::move(inputs));
}

TensorSet blank_inputs(const Problem& problem) {
    require_valid(problem);
    Case c;
    c.problem = problem;
    return make_inputs(c);
}

}  // namespace attest::law
