#pragma once
// A simulated thread, what it waits for, and the randomness of schedules.

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "kernels/simt/types.hpp"

namespace simt {

/// A cp.async between its issue and its wait.
struct PendingCopy {
    void* destination;
    const void* source;
    int bytes, width;  ///< bytes copied; the rest of width is zero-filled
    bool landed;
    const void* pc;
};

enum class ThreadState : std::uint8_t { ready, at_barrier, in_collective, done };
enum class Collective : std::uint8_t { syncwarp, shuffle, ballot, vote, ldmatrix, mma };
const char* name(Collective kind);

struct BlockThread {
    uint3 index{};
    unsigned linear = 0, lane = 0, warp = 0;
    ThreadState state = ThreadState::done;
    Location location;
    Collective waiting_kind = Collective::syncwarp;
    boost::context::fiber fiber;  ///< where it goes on; empty while it runs
    std::unique_ptr<unsigned char[]> stack;
    std::vector<PendingCopy> open_copies;
    std::deque<std::vector<PendingCopy>> committed_copies;
    std::uint16_t clock[32]{};  ///< vector clock over the warp's lanes, joined by __syncwarp alone
};

/// A warp collective that not all its lanes have reached; free where none has. A lane's operands
/// lie on its stack and are valid while it waits.
struct OpenCollective {
    std::uint32_t mask = 0, arrived = 0;
    Collective kind = Collective::syncwarp;
    Location location;
    const void* in[32];
    void* out[32];
};

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random {
    std::uint64_t state = 0;
    std::uint64_t operator()() {
        std::uint64_t z = state += 0x9E3779B97F4A7C15ull;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        return z ^ z >> 31;
    }
    /// Below limit, a number of 32 bits.
    std::size_t below(std::size_t limit) { return ((*this)() >> 32) * limit >> 32; }
};

}  // namespace simt
