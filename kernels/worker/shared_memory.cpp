#include "kernels/worker/shared_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/worker/crash.hpp"

namespace attest::worker {

void SharedMemory::resize(std::uint64_t bytes) {
    if (bytes == bytes_) return;
    if (base_ != nullptr) ::munmap(base_, bytes_);
    base_ = nullptr;
    open_.clear();
    void* mapped = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, protocol::memory_fd, 0);
    if (mapped == MAP_FAILED) throw MemoryGone("mapped");
    base_ = static_cast<std::byte*>(mapped);
    bytes_ = bytes;
    circumstances.arena = reinterpret_cast<std::uint64_t>(mapped);
    circumstances.arena_bytes = bytes;
}

void SharedMemory::protect(std::uint64_t begin, std::uint64_t end, int protection) const {
    if (begin >= end) return;
    if (::mprotect(base_ + begin, end - begin, protection) != 0) {
        throw MemoryGone("protected");
    }
}

void SharedMemory::open(std::span<const protocol::WireTensor> tensors) {
    wanted_.clear();
    for (const protocol::WireTensor& t : tensors) {
        if (t.pages > bytes_ || t.pages_bytes > bytes_ - t.pages) {
            throw std::runtime_error("a tensor lies outside the shared memory");
        }
        wanted_.push_back({t.pages, t.pages + t.pages_bytes, t.access});
    }
    if (wanted_ == open_) return;
    // Slots begin at fixed places, so an old range and a new one that overlap begin together: what
    // they share and allow alike is left as it is.
    const auto kept = [](const std::vector<Range>& ranges, const Range& r) {
        for (const Range& other : ranges) {
            if (other.begin == r.begin && other.access == r.access)
                return std::min(other.end, r.end);
        }
        return r.begin;
    };
    for (const Range& r : open_) protect(kept(wanted_, r), r.end, PROT_NONE);
    for (const Range& r : wanted_) {
        const int allowed = r.access == protocol::Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
        protect(kept(open_, r), r.end, allowed);
    }
    open_.swap(wanted_);
}

}  // namespace attest::worker
