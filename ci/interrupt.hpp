#pragma once
// Ctrl-C: once finishes the cases that run, twice stops at once.

#include <atomic>

namespace attest::ci {

/// While this lives, SIGINT, SIGTERM and SIGHUP are counted instead of ending the program.
class InterruptGuard {
public:
    explicit InterruptGuard(int running_cases);
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;

    const std::atomic<int>& count() const noexcept;
    void stop() noexcept;  ///< as if twice interrupted
};

}  // namespace attest::ci
