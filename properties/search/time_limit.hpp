#pragma once
// How long one call may take, and what it means where it takes longer.
//
// The first call of a process starts things up and may compile; a call with more arithmetic takes
// longer: each has time of its own on top. A call that takes longer still has not hung yet: its
// case is tried once more in a fresh process with a limit many times as long. Only what does not
// return then either is a hang; what does has shown that the limit is short, and raises it. From
// the first hang on the limit drops to what good calls make plausible, since a kernel that hangs
// costs it every time. All that is meant for calls that get somewhere: one that shows no sign of
// life (kernels/worker/signs_of_life.hpp) for a part of the limit, and has not the arithmetic to
// explain it, is ended then, and again its case decides in a fresh process, with longer. Where a
// call's arithmetic alone, at the speed the kernel has shown, explains
// that it did not return, nothing is said against it: it is too slow to be judged with this limit.

#include <atomic>
#include <chrono>
#include <string>

#include "kernels/worker/session.hpp"
#include "reference/problem/problem.hpp"

namespace attest::search {

/// Products of a problem's two matrix multiplications, by which its time is foretold.
double products_of(const Problem& problem) noexcept;

/// By how much longer a call of compiled code may take than its limit, where it decides.
inline constexpr int compiled_patience = 3;

class TimeLimit {
public:
    using milliseconds = std::chrono::milliseconds;

    /// patience: by how much longer a call may take that decides whether the kernel hangs, and the
    /// first call of a process. More where calls compile.
    /// silence: how long a call that decides may show no sign of life at the least.
    explicit TimeLimit(milliseconds full, int patience = 2, milliseconds silence = milliseconds(0))
        : full_(seconds_of(full)), silence_(seconds_of(silence)), patience_(patience) {}
    TimeLimit(const worker::SessionOptions& session, int patience)
        : TimeLimit(session.timeout, patience, session.silence) {}

    milliseconds full() const noexcept { return to_milliseconds(full_); }

    /// Of a call of so many products; `first` of its process.
    milliseconds of(double products, bool first) const noexcept;
    /// Of a call that decides whether the kernel hangs.
    milliseconds patient(double products) const noexcept;
    /// How long a call may show no sign of life; `deciding`: one that decides whether it hangs.
    milliseconds silence(double products, bool deciding) const noexcept;
    /// For the smaller case of a kernel that was seen to hang: long against any good call, and
    /// short against the full limit.
    milliseconds to_confirm() const noexcept;

    /// Whether so many products may by themselves take longer than the full limit.
    bool too_many(double products) const noexcept { return expected(products) > full_; }
    /// "did not return within 40 s; at the speed ...": of a call that has too many.
    std::string too_slow(milliseconds waited, double products) const;

    // Any thread.
    void saw_good(double seconds, double products, bool first) noexcept;
    /// A call that had its patient limit did not return, in a fresh process.
    void saw_hang() noexcept { hangs_ = true; }
    bool hangs() const noexcept { return hangs_; }
    /// A call that looked hung returned after so long.
    void was_short(double seconds) noexcept;

private:
    static double seconds_of(milliseconds time) noexcept {
        return std::chrono::duration<double>(time).count();
    }
    static milliseconds to_milliseconds(double seconds) noexcept {
        return milliseconds(static_cast<std::int64_t>(seconds * 1000));
    }
    double expected(double products) const noexcept;
    double arithmetic(double products) const noexcept;
    double start_up() const noexcept;
    double now() const noexcept;

    std::atomic<double> full_;
    const double silence_;
    const int patience_;
    std::atomic<double> longest_good_{0};     ///< of the calls that were not first
    std::atomic<double> longest_start_{0};    ///< of those that were
    std::atomic<double> slowest_product_{0};  ///< seconds, of calls with many
    std::atomic<bool> hangs_{false};
};

}  // namespace attest::search
