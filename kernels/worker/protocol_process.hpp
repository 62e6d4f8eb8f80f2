#pragma once
// What is said of a worker's process itself: what holds it in, where it died, and, on a descriptor
// that no kernel has, how it ended.

#include "kernels/worker/protocol.hpp"

namespace attest::worker::protocol {

struct LocationFrame {
    FrameHeader header;
    std::uint32_t text_bytes = 0;
    std::uint32_t reserved = 0;
};

struct ConfinedFrame {
    FrameHeader header;
    std::uint32_t barriers = 0;  // bits of Barrier
    std::uint32_t reserved = 0;
};

/// Where attest_worker's first process of a namespace says how the kernel's ended. No kernel has
/// it.
inline constexpr int end_fd = 5;

/// No frame: all that is ever written there.
struct EndReport {
    std::int32_t signal = 0;  // 0 where it ended by itself
    std::int32_t code = 0;
};

static_assert(sizeof(ConfinedFrame) == 24 && sizeof(EndReport) == 8);

}  // namespace attest::worker::protocol
