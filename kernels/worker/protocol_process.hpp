#pragma once
// The frames about a worker's process itself: what holds it in, where it died, how it ended.

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

struct EndedFrame {
    FrameHeader header;
    std::int32_t signal = 0;  // 0 where it ended by itself
    std::int32_t code = 0;
};

static_assert(sizeof(ConfinedFrame) == 24 && sizeof(EndedFrame) == 24);

}  // namespace attest::worker::protocol
