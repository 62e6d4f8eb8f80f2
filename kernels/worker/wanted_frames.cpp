#include "kernels/worker/wanted_frames.hpp"

#include <cstring>

namespace attest::worker {

bool is_wanted(std::span<const std::byte> frame, protocol::FrameKind kind, std::uint32_t sequence) {
    protocol::FrameHeader header;
    if (frame.size() < sizeof header) return false;
    std::memcpy(&header, frame.data(), sizeof header);
    if (header.magic != protocol::magic || header.size != frame.size()) return false;
    // An answer in another version is passed on while there is somebody to tell: at hello.
    if (header.version != protocol::version && kind != protocol::FrameKind::manifest) return false;
    if (header.kind == kind && header.sequence == sequence) return true;
    if (header.kind == protocol::FrameKind::load_error)
        return kind == protocol::FrameKind::manifest;
    return header.kind == protocol::FrameKind::fault && kind != protocol::FrameKind::location &&
           frame.size() == sizeof(protocol::FaultFrame);
}

bool is_unasked(std::span<const std::byte> frame, protocol::FrameKind kind) {
    protocol::FrameHeader header;
    if (kind == protocol::FrameKind::manifest || frame.size() < sizeof header) return false;
    std::memcpy(&header, frame.data(), sizeof header);
    const bool answers =
        header.kind == protocol::FrameKind::answer || header.kind == protocol::FrameKind::reply;
    return answers && header.magic == protocol::magic && header.version == protocol::version &&
           header.size == frame.size();
}

}  // namespace attest::worker
