#pragma once
// A kernel in a worker process, as the search sees it.

#include "properties/search/subject.hpp"

namespace attest {

class SessionSubject final : public Subject {
public:
    /// Throws what Session's constructor throws.
    SessionSubject(const KernelSpec& spec, const SessionOptions& options)
        : session_(spec, options) {}

    const Manifest& manifest() const noexcept override { return session_.manifest(); }
    bool supports(const Problem& problem, std::string* reason) override {
        return session_.supports(problem, reason);
    }
    CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        return session_.forward(problem, inputs);
    }
    void begin_case(std::uint64_t first) noexcept override { session_.begin_case(first); }
    void restart() override { session_.restart(); }
    void set_timeout(std::chrono::milliseconds timeout) noexcept override {
        session_.set_timeout(timeout);
    }

private:
    Session session_;
};

}  // namespace attest
