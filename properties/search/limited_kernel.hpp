#pragma once
// A kernel under the campaign's time limit: calls have the limit of the moment, while starting a
// process and asking what it supports always have the full one.

#include <memory>
#include <utility>

#include "properties/search/kernel.hpp"
#include "properties/search/time_limit.hpp"

namespace attest::search {

class LimitedKernel final : public Kernel {
public:
    LimitedKernel(std::unique_ptr<Kernel> kernel, const TimeLimit& limit)
        : kernel_(std::move(kernel)), limit_(limit) {}

    const kernel::Manifest& manifest() const noexcept override { return kernel_->manifest(); }
    bool supports(const Problem& problem, std::string* reason) override {
        kernel_->set_timeout(limit_.full());
        return kernel_->supports(problem, reason);
    }
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        kernel_->set_timeout(own_.count() > 0 ? own_ : limit_.now());
        return kernel_->forward(problem, inputs);
    }
    void begin_case(std::uint64_t first) noexcept override { kernel_->begin_case(first); }
    void restart() override {
        kernel_->set_timeout(limit_.full());
        kernel_->restart();
    }
    /// A limit of its own for the calls to come; zero: the campaign's again.
    void set_timeout(std::chrono::milliseconds timeout) noexcept override { own_ = timeout; }

private:
    std::unique_ptr<Kernel> kernel_;
    const TimeLimit& limit_;
    std::chrono::milliseconds own_{0};
};

}  // namespace attest::search
