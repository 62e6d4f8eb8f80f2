#pragma once
// The worker's last words. A signal handler on a stack of its own sends what it knows (signal,
// address, read or write, where the shared memory lay) and then lets the process die of the signal,
// so that the wait status tells the same story.

#include <cstdint>

#include "kernels/worker/protocol.hpp"

namespace attest::worker {

/// What the handler reports besides the signal. Written by the serving thread only.
struct Circumstances {
    protocol::Phase phase = protocol::Phase::loading;
    std::uint64_t arena = 0, arena_bytes = 0;
    std::uint64_t text_guard = 0, text_guard_bytes = 0;  ///< behind the place for a text
    std::uint64_t stack_foot = 0;    ///< eight bytes of the serving thread's first frame
    bool allocation_failed = false;  ///< operator new has failed in this call
};
extern Circumstances circumstances;

/// Takes SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, and marks failed allocations of C++.
void install_crash_reports();

/// Whether SIGSEGV and SIGBUS still come here: a kernel that takes them hides what it reads outside
/// its tensors.
bool crash_reports_stand();

}  // namespace attest::worker
