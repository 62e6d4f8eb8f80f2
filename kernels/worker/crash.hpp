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
    std::uint64_t memory_limit = 0;  ///< of the address space; 0: none
    bool allocation_failed = false;  ///< operator new has failed in this call
};
extern Circumstances circumstances;

/// Takes SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, and marks failed allocations of C++.
void install_crash_reports();

/// Bytes of address space in use, from /proc/self/statm; async-signal-safe; 0 where unknown.
std::uint64_t address_space_used() noexcept;

/// Lets the process map `bytes` more than it does now. Not under a sanitizer, whose shadow takes
/// terabytes: there only the host's watch over resident memory holds.
void allow_memory(std::uint64_t bytes);

}  // namespace attest::worker
