#pragma once
// How a launch is scheduled, and what it reports. Both belong to the calling host thread.

#include <cstdint>
#include <string>
#include <vector>

namespace simt {

/// The order in which ready threads run. Every order is one a GPU may take; a correct kernel gives
/// the same bits in all.
enum class Schedule : std::uint8_t { round_robin, reverse, random, warp_greedy };

/// When a cp.async lands: at its wait (the latest moment allowed), at once, or either.
enum class AsyncCopy : std::uint8_t { lazy, eager, random };

struct Options {
    Schedule schedule = Schedule::random;
    AsyncCopy async_copy = AsyncCopy::lazy;
    std::uint64_t seed = 1;
    unsigned workers = 1;  ///< OS threads that run blocks side by side
    std::uint64_t switches_max =
        200'000'000;    ///< of one block: beyond it the launch is called hung
    bool told = false;  ///< diagnostics are printed when the launch that found them ends
    bool warn_exit_before_barrier = true;  ///< legal since sm_70, rarely meant
};

/// A defect of the kernel, found while it ran. kind is one of the words of kernels/simt/README.md.
struct Diagnostic {
    std::string kind, text;
    bool warning = false;
    bool race = false;  ///< names two places; what else is found often follows from it
    bool operator==(const Diagnostic&) const = default;
};

struct Report {
    std::vector<Diagnostic> diagnostics;  ///< each once, at most 64
    std::uint64_t blocks = 0, switches = 0, barriers = 0, collectives = 0;
    bool clean() const {
        for (const Diagnostic& d : diagnostics)
            if (!d.warning) return false;
        return true;
    }
};

Options& options();     ///< of this host thread, for its next launches
Report& last_report();  ///< of this host thread's launches since clear_report()
void clear_report();

}  // namespace simt
