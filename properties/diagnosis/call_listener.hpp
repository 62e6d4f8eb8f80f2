#pragma once
// The calls that a law makes of a kernel, forward and backward, as far as they are small.

#include <utility>
#include <vector>

#include "properties/diagnosis/deviation.hpp"
#include "properties/search/counterexample.hpp"
#include "properties/search/kernel.hpp"

namespace attest::diagnosis {

/// Passes every call on and keeps the small ones.
class CallListener final : public search::Kernel {
public:
    using Kept = std::vector<std::pair<Specification, worker::CallResult>>;
    explicit CallListener(search::Kernel& kernel) : kernel_(kernel) {}

    const kernel::Manifest& manifest() const noexcept override { return kernel_.manifest(); }
    bool supports(const Problem& problem, std::string* reason) override {
        return kernel_.supports(problem, reason);
    }
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        return keep(forwards, problem, inputs, kernel_.forward(problem, inputs));
    }
    worker::CallResult forward_beside(const Problem& problem, const TensorSet& inputs) override {
        return kernel_.forward_beside(problem, inputs);  // no answer to the question alone
    }
    worker::CallResult backward(const Problem& problem, const TensorSet& inputs,
                                const std::vector<Role>& wanted) override {
        return keep(backwards, problem, inputs, kernel_.backward(problem, inputs, wanted));
    }
    void begin_case(std::uint64_t first) noexcept override { kernel_.begin_case(first); }
    void restart() override { kernel_.restart(); }
    void set_timeout(std::chrono::milliseconds timeout) noexcept override {
        kernel_.set_timeout(timeout);
    }

    Kept forwards, backwards;

private:
    worker::CallResult keep(Kept& list, const Problem& problem, const TensorSet& inputs,
                            worker::CallResult result) const;
    search::Kernel& kernel_;
};

/// What the law of a counterexample asks of its smallest case.
CallListener listen(search::Kernel& kernel, const search::Counterexample& counterexample);

/// Scores times both dimensions, several times of f64: what a call costs the reference.
std::int64_t products(const Problem& problem) noexcept;
/// Of one call. So many of them, over all evidence and all deviations, take about a second: 100
/// deviations times 3e5 products a case times 16 cases at 0.3e9 a second.
inline constexpr std::int64_t products_max = 300'000;

}  // namespace attest::diagnosis
