#pragma once
// The worker's view of the memory file: no page may be touched but those of the current call's
// tensors, inputs for reading only. Calls of one shape reuse the protections of the call before.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/worker/protocol.hpp"

namespace attest::worker {

/// The kernel has unmapped it, or closed the file.
struct MemoryGone : std::runtime_error {
    explicit MemoryGone(const std::string& verb)
        : std::runtime_error("the memory of the tensors cannot be " + verb +
                             ": an earlier call unmapped it or closed its file") {}
};

class SharedMemory {
public:
    SharedMemory() = default;
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    /// Maps the file anew where its size has changed; everything is forbidden then. Throws
    /// MemoryGone.
    void resize(std::uint64_t bytes);

    /// Opens exactly the pages of these tensors. Throws std::runtime_error on pages outside the
    /// memory.
    void open(std::span<const protocol::WireTensor> tensors);

    std::byte* at(std::uint64_t offset) const noexcept { return base_ + offset; }

private:
    struct Range {
        std::uint64_t begin = 0, end = 0;
        protocol::Access access = protocol::Access::read;
        bool operator==(const Range&) const = default;
    };
    void protect(std::uint64_t begin, std::uint64_t end, int protection) const;

    std::byte* base_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::vector<Range> open_, wanted_;
};

}  // namespace attest::worker
