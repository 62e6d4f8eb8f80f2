#pragma once
// The worker's end of the socket.

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/worker/protocol.hpp"

namespace attest::worker {

/// Sends a frame whose fixed part is `frame` and whose last bytes are `text`; sets its size. The
/// host is gone where that fails, and so is the reason to live: exits.
void send_frame(std::span<std::byte> frame, std::string_view text = {});

template <typename Frame>
void send(Frame frame, std::string_view text = {}) {
    send_frame(std::as_writable_bytes(std::span<Frame, 1>(&frame, 1)), text);
}

/// The socket and the memory file are what they were when this process began; else a kernel has
/// closed or replaced what a later call needs: exits with closed_exit.
void require_ends();

/// manifest or load_error.
void send_text(protocol::FrameKind kind, std::uint32_t sequence, std::string_view text);

/// The next frame, empty where the host has closed the socket.
std::span<const std::byte> receive_frame();

/// Cuts a text to what a reason or an error may take, at a character's edge (UTF-8).
std::string_view cut_text(std::string_view text);

}  // namespace attest::worker
