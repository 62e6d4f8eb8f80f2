#pragma once
// A kernel in a worker process, as the search sees it.

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "properties/search/kernel.hpp"

namespace attest::search {

class SessionKernel final : public Kernel {
public:
    /// Throws what Session's constructor throws, and BadInput where device memory is claimed by
    /// what is given none.
    SessionKernel(const kernel::KernelSpec& spec, const worker::SessionOptions& options);
    ~SessionKernel() override { look_back(); }

    const kernel::Manifest& manifest() const noexcept override { return session_.manifest(); }
    /// A kernel that answers over an empty axis with an error refuses it: no number is wrong. Each
    /// axis is tried once; where the call ends otherwise than by an error the cases will tell.
    bool supports(const Problem& problem, std::string* reason) override;
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        return session_.forward(problem, inputs);
    }
    worker::CallResult forward_beside(const Problem& problem, const TensorSet& inputs) override {
        return session_.forward_beside(problem, inputs);
    }
    worker::CallResult backward(const Problem& problem, const TensorSet& inputs,
                                const std::vector<Role>& wanted) override {
        return session_.backward(problem, inputs, wanted);
    }
    void begin_case(std::uint64_t first) noexcept override {
        session_.begin_case(first);
        first_call_ = first;
    }
    void restart() override {
        look_back();
        session_.restart();
    }
    void set_timeout(std::chrono::milliseconds timeout) noexcept override {
        session_.set_timeout(timeout, silence_);
    }
    void set_silence(std::chrono::milliseconds silence) noexcept override { silence_ = silence; }
    void use_processors(worker::Processors which) noexcept override {
        session_.use_processors(which);
    }

    int process_id() const { return session_.process_id(); }
    worker::Barriers barriers() const noexcept { return session_.barriers(); }

private:
    /// Before a process is ended that has not ended by itself.
    void look_back();

    std::function<void(worker::Session&)> before_end_;
    worker::Session session_;
    std::uint64_t first_call_ = 0;
    /// What it said of a call without sequences, queries, keys; empty: no error.
    std::array<std::optional<std::string>, 3> error_when_empty_;
    std::chrono::milliseconds silence_{0};
};

}  // namespace attest::search
