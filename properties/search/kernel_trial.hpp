#pragma once
// The Trial over a real kernel: runs it, keeps what it returned, and asks the oracle for the truth.
// A call that did not end well stops the law with the violation that says so. And the Trial that
// the truth would make of the same case.

#include <optional>

#include "properties/law/trial.hpp"
#include "properties/search/kernel.hpp"
#include "properties/search/sizes.hpp"

namespace attest::search {

/// The verdict of a call that gave no answer, or gave one and did what it must not; none where the
/// outputs may be looked at.
std::optional<law::Verdict> verdict_of_call(const Problem& problem,
                                            const worker::CallResult& result);

/// Thrown where a call gave no answer that a law could judge.
struct NoAnswer {
    law::Verdict verdict;
};

class KernelTrial final : public law::Trial {
public:
    /// The case must be one the kernel supports. Nothing runs before a law asks.
    KernelTrial(Kernel& kernel, const Case& tried);

    const Case& tried() const override { return tried_; }
    const TensorSet& inputs() const override { return inputs_; }
    const Dialect& dialect() const override { return kernel_.manifest().dialect; }
    const Numerics& numerics() const override { return kernel_.manifest().numerics; }
    const TensorSet& observed() const override;
    TensorSet run(const Problem& problem, const TensorSet& inputs) const override;
    TensorSet run_alone(const Problem& problem, const TensorSet& inputs) const override;
    TensorSet run_beside(const Problem& problem, const TensorSet& inputs) const override;
    bool supports(const Problem& problem) const override;
    const bound::Expected& expected() const override;
    bound::Expected expected(const Problem& problem, const TensorSet& inputs) const override;
    law::Judgement compare(const Problem& problem, const TensorSet& inputs,
                           const TensorSet& observed) const override;
    law::Judgement compare_structure() const override;
    law::Judgement compare_probable(double rate) const override;
    bound::ErrorBudget error_budget(const Problem& problem, const TensorSet& inputs) const override;
    // Of gradients, in gradient_trial.cpp.
    std::vector<Role> gradients_of(const Problem& problem) const override;
    bound::ExpectedGradients expected_gradients(const Problem& problem,
                                                const TensorSet& inputs) const override;
    TensorSet backward(const Problem& problem, const TensorSet& inputs,
                       const std::vector<Role>& wanted) const override;
    law::Judgement compare_gradients(const Problem& problem, const TensorSet& inputs,
                                     const TensorSet& gradients) const override;
    law::Judgement compare_gradient_structure(const TensorSet& inputs,
                                              const TensorSet& gradients) const override;

    /// What became of the calls: of the last one that failed.
    struct Account {
        worker::Outcome outcome = worker::Outcome::ok;
        std::optional<worker::Fault> fault;
        Sizes largest;              ///< of the problems that were answered
        std::uint64_t outputs = 0;  ///< a hash of the answers
        std::string printed;        ///< by the last call that printed
    };
    const Account& account() const noexcept { return account_; }

private:
    void keep(const worker::CallResult& result) const;
    TensorSet outputs_of(const Problem& problem, worker::CallResult result) const;
    bool is_tried(const Problem& problem, const TensorSet& inputs) const;

    Kernel& kernel_;
    const Case& tried_;
    TensorSet inputs_;
    mutable std::optional<TensorSet> observed_;
    mutable std::optional<bound::Expected> expected_;
    mutable Account account_;
};

/// The same case with the reference in the kernel's place, and bounds twice as wide: what a law
/// reads off its answers it can read off those of any correct kernel, whose own bounds lie within
/// these.
class TruthTrial : public law::Trial {
public:
    explicit TruthTrial(const law::Given& given) : given_(given) {}

    const Case& tried() const override { return given_.tried(); }
    const TensorSet& inputs() const override { return given_.inputs(); }
    const Dialect& dialect() const override { return given_.dialect(); }
    const Numerics& numerics() const override { return given_.numerics(); }
    bool supports(const Problem& problem) const override { return given_.supports(problem); }
    const TensorSet& observed() const override;
    TensorSet run(const Problem& problem, const TensorSet& inputs) const override;
    TensorSet run_alone(const Problem& problem, const TensorSet& inputs) const override {
        return run(problem, inputs);
    }
    TensorSet run_beside(const Problem& problem, const TensorSet& inputs) const override {
        return run(problem, inputs);
    }
    const bound::Expected& expected() const override;
    bound::Expected expected(const Problem& problem, const TensorSet& inputs) const override;
    law::Judgement compare(const Problem& problem, const TensorSet& inputs,
                           const TensorSet& observed) const override;
    law::Judgement compare_structure() const override;
    law::Judgement compare_probable(double rate) const override;
    bound::ErrorBudget error_budget(const Problem& problem,
                                    const TensorSet& inputs) const override {
        return given_.error_budget(problem, inputs);
    }
    std::vector<Role> gradients_of(const Problem& problem) const override {
        return given_.gradients_of(problem);
    }
    bound::ExpectedGradients expected_gradients(const Problem& problem,
                                                const TensorSet& inputs) const override;
    TensorSet backward(const Problem& problem, const TensorSet& inputs,
                       const std::vector<Role>& wanted) const override;
    law::Judgement compare_gradients(const Problem& problem, const TensorSet& inputs,
                                     const TensorSet& gradients) const override;
    law::Judgement compare_gradient_structure(const TensorSet& inputs,
                                              const TensorSet& gradients) const override;

private:
    const law::Given& given_;
    mutable std::optional<TensorSet> observed_;
    mutable std::optional<bound::Expected> expected_;
};

}  // namespace attest::search
