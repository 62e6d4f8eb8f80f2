#pragma once
// Forward and then backward of the kernel, as training calls them.

#include <optional>
#include <utility>
#include <vector>

#include "properties/law/interval.hpp"
#include "properties/law/trial.hpp"

namespace attest::law {

/// In which the last rounding of a gradient happens.
Precision gradient_format(const Problem& problem, Role role);

/// Forward's inputs with dO and what forward gave for them: what backward is called with.
TensorSet backward_inputs(const Problem& problem, const TensorSet& inputs,
                          const TensorSet& outputs);

class GradientRun {
public:
    /// Every gradient that the kernel returns of the problem.
    GradientRun(const Trial& trial, Problem problem, TensorSet inputs)
        : GradientRun(trial, problem, std::move(inputs), trial.gradients_of(problem)) {}
    GradientRun(const Trial& trial, Problem problem, TensorSet inputs, std::vector<Role> wanted);

    const Trial& trial() const noexcept { return *trial_; }
    const Problem& problem() const noexcept { return problem_; }
    const TensorSet& inputs() const noexcept { return inputs_; }
    const TensorSet& gradients() const noexcept { return gradients_; }
    bool has(Role role) const noexcept { return gradients_.has(role); }
    const Tensor& operator[](Role role) const { return gradients_[role]; }

    const bound::ExpectedGradients& expected() const;
    const bound::ExpectedElement& expected(Role role, std::int64_t flat) const {
        return expected()[role][static_cast<std::size_t>(flat)];
    }
    /// Where the true gradient lies by the kernel's answer; everything where nothing is claimed.
    Interval truth(Role role, std::int64_t flat) const;
    /// Backward once more, of what forward gave then.
    TensorSet again() const;
    Judgement compare() const { return trial_->compare_gradients(problem_, inputs_, gradients_); }

private:
    const Trial* trial_;
    Problem problem_;
    TensorSet inputs_;  ///< of backward
    std::vector<Role> wanted_;
    TensorSet gradients_;
    mutable std::optional<bound::ExpectedGradients> expected_;
};

/// Of the case as it was drawn.
inline GradientRun run_of(const Trial& trial) {
    return {trial, trial.problem(), trial.inputs()};
}

}  // namespace attest::law
