#pragma once
// How long one call may take. A kernel that hangs costs its limit every time; so after the first
// hang under the full limit the limit drops to what its good calls make plausible. A hang under a
// lowered limit is taken for what it looks like while searching, and confirmed under the full one
// at the end.

#include <algorithm>
#include <atomic>
#include <chrono>

namespace attest::search {

class TimeLimit {
public:
    explicit TimeLimit(std::chrono::milliseconds full) : full_(full) {}

    std::chrono::milliseconds full() const noexcept { return full_; }

    std::chrono::milliseconds now() const noexcept {
        if (!lowered_ || pinned_) return full_;
        // 20 times the longest good call, which a loaded machine has stretched already; a fifth of
        // a second where good calls are too short to measure by, and no more than one: every law of
        // a kernel that hangs waits this long. But four times the longest good call at the least,
        // or one slow moment would make all that a slow kernel does a hang.
        constexpr double generosity = 20, floor_seconds = 0.2, most_seconds = 1, patience = 4;
        const double seconds =
            std::max(std::clamp(generosity * longest_good_, floor_seconds, most_seconds),
                     patience * longest_good_);
        const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
        return std::min(limit, full_);
    }

    /// For the smaller case of a kernel that was seen to hang under the full limit: long against
    /// any good call, and short against the full limit.
    std::chrono::milliseconds to_confirm() const noexcept {
        constexpr int longer = 10;
        return std::min(longer * now(), full_);
    }

    /// Any thread.
    void saw_good(double seconds) noexcept {
        double known = longest_good_;
        while (seconds > known && !longest_good_.compare_exchange_weak(known, seconds)) {
        }
    }
    void saw_hang() noexcept { lowered_ = true; }
    /// A hang under the lowered limit was none: it is not lowered again.
    void was_wrong() noexcept { pinned_ = true; }

private:
    const std::chrono::milliseconds full_;
    std::atomic<double> longest_good_{0};
    std::atomic<bool> lowered_{false}, pinned_{false};
};

}  // namespace attest::search
