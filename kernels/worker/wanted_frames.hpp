#pragma once
// What a worker may say at a time, by the protocol. Anything may come: it is one process with a
// kernel.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/worker/protocol.hpp"

namespace attest::worker {

/// The answer of this kind and number that is waited for, or what may come at any time.
bool is_wanted(std::span<const std::byte> frame, protocol::FrameKind kind, std::uint32_t sequence);

/// Of what is not wanted: an answer to another question than the one that is asked. Who loads is
/// not asked any yet.
bool is_unasked(std::span<const std::byte> frame, protocol::FrameKind kind);

}  // namespace attest::worker
