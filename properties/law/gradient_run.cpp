#include "properties/law/gradient_run.hpp"

namespace attest::law {

Precision gradient_format(const Problem& problem, Role role) {
    if (role == Role::d_sinks) return Precision::f32;
    return role == Role::d_k || role == Role::d_v ? problem.format_kv : problem.format_q;
}

TensorSet backward_inputs(const Problem& problem, const TensorSet& inputs,
                          const TensorSet& outputs) {
    TensorSet all = inputs;
    for (const Role role : {Role::o, Role::lse})
        if (outputs.has(role) && shape_of(problem, role)) all.put(role, outputs[role]);
    return all;
}

GradientRun::GradientRun(const Trial& trial, Problem problem, TensorSet inputs,
                         std::vector<Role> wanted)
    : trial_(&trial),
      problem_(std::move(problem)),
      inputs_(backward_inputs(problem_, inputs, trial.run(problem_, inputs))),
      wanted_(std::move(wanted)),
      gradients_(trial.backward(problem_, inputs_, wanted_)) {}

const bound::ExpectedGradients& GradientRun::expected() const {
    if (!expected_) expected_ = trial_->expected_gradients(problem_, inputs_);
    return *expected_;
}

Interval GradientRun::truth(Role role, std::int64_t flat) const {
    const bound::ExpectedElement& e = expected(role, flat);
    if (!(e.bound < infinite)) return {-infinite, infinite};
    return truth_of(gradients_[role].get(flat), e.bound, gradient_format(problem_, role));
}

TensorSet GradientRun::again() const {
    return trial_->backward(problem_, inputs_, wanted_);
}

}  // namespace attest::law
