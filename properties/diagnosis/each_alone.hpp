#pragma once
// A kernel each call of which is the first of a process: of one that remembers, what it computes.

#include "properties/search/kernel.hpp"

namespace attest::diagnosis {

class EachAlone final : public search::Kernel {
public:
    explicit EachAlone(search::Kernel& kernel) : kernel_(kernel) {}

    const kernel::Manifest& manifest() const noexcept override { return kernel_.manifest(); }
    bool supports(const Problem& problem, std::string* reason) override {
        return kernel_.supports(problem, reason);
    }
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        kernel_.restart();
        return kernel_.forward(problem, inputs);
    }
    void begin_case(std::uint64_t first) noexcept override { kernel_.begin_case(first); }
    void restart() override { kernel_.restart(); }
    void set_timeout(std::chrono::milliseconds timeout) noexcept override {
        kernel_.set_timeout(timeout);
    }

private:
    search::Kernel& kernel_;
};

}  // namespace attest::diagnosis
