#pragma once
// A call of the kernel: planned, with what the reference expects of it, and made.

#include <cstdint>
#include <optional>
#include <utility>

#include "properties/law/trial.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

/// A call that is not made yet: what it asks and, when asked for, what the reference expects.
class PlannedCall {
public:
    PlannedCall(const Given& given, Problem problem, TensorSet inputs)
        : given_(&given), problem_(std::move(problem)), inputs_(std::move(inputs)) {}

    const Given& given() const noexcept { return *given_; }
    const Problem& problem() const noexcept { return problem_; }
    const TensorSet& inputs() const noexcept { return inputs_; }

    const bound::Expected& expected() const;
    const bound::ExpectedElement& expected_output(std::int64_t flat) const {
        return expected().output[static_cast<std::size_t>(flat)];
    }
    const bound::ExpectedElement& expected_lse(std::int64_t flat) const {
        return expected().lse[static_cast<std::size_t>(flat)];
    }
    Visibility visibility() const { return {problem_, given_->dialect(), inputs_}; }
    Precision output_format() const;  ///< in which the last rounding of an output happens
    Precision lse_format() const;

private:
    const Given* given_;
    Problem problem_;
    TensorSet inputs_;
    mutable std::optional<bound::Expected> expected_;
};

/// A call of the kernel, made where this is constructed.
class Run : public PlannedCall {
public:
    explicit Run(const Trial& trial);  ///< the case itself
    Run(const Trial& trial, Problem problem, TensorSet inputs);
    Run(const Trial& trial, PlannedCall call);

    Run alone() const;  ///< the same call in a process that has answered nothing before

    Run beside() const;  ///< the same call while another thread calls the kernel

    const Trial& trial() const noexcept { return *trial_; }
    const Tensor& output() const { return outputs_[Role::o]; }  ///< [batch, heads_q, len_q, dim_v]
    bool has_lse() const noexcept { return outputs_.has(Role::lse); }
    const Tensor& lse() const { return outputs_[Role::lse]; }  ///< [batch, heads_q, len_q]
    const TensorSet& outputs() const noexcept { return outputs_; }

private:
    const Trial* trial_;
    TensorSet outputs_;
};

/// A further call where the kernel takes the problem; none where it would refuse it.
std::optional<Run> run_if_supported(const Trial& trial, const Problem& problem, TensorSet inputs);

/// Inputs of the shapes and kinds that `problem` needs (lengths, block table, ... follow from it):
/// the law then puts its own q, k, v, mask, slopes and sinks in. Throws BadInput on a problem that
/// contradicts itself.
TensorSet blank_inputs(const Problem& problem);

}  // namespace attest::law
