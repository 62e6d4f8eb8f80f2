// Shared memory of one block: an arena with a red zone after every array, all NaN before the block
// starts.
#include <algorithm>
#include <cstring>

#include "kernels/simt/block.hpp"
#include "kernels/simt/check.hpp"

namespace simt {
namespace {

constexpr std::size_t arena_bytes =
    512 * 1024;  // dynamic + static maximum and their red zones, with room
constexpr std::size_t red_zone_bytes = 128;
constexpr std::size_t alignment = 128;
constexpr unsigned char poison = 0xFF;  // NaN in every float format

}  // namespace

void Block::reset_memory() {
    if (arena_ == nullptr) {
        arena_store_.assign(arena_bytes + alignment, poison);
        const auto raw = reinterpret_cast<std::uintptr_t>(arena_store_.data());
        arena_ = arena_store_.data() + (alignment - raw % alignment) % alignment;
    } else {
        std::memset(arena_, poison, std::min(arena_top_ + red_zone_bytes, arena_bytes));
    }
    statics_.clear();
    dynamics_.clear();
    static_bytes_ = 0;
    red_zones_.assign(1, arena_);
    arena_top_ = red_zone_bytes;
    if (checker() != nullptr) checker()->arena_reset(arena_, arena_ + arena_bytes);
}

void* Block::allocate(std::size_t bytes, const char* array) {
    arena_top_ = (arena_top_ + alignment - 1) / alignment * alignment;
    if (arena_top_ + bytes + red_zone_bytes > arena_bytes) {
        report("shared_limit", std::string(array) + " does not fit into any shared memory");
        arena_top_ =
            alignment;  // the report has already failed the launch; stay inside our own memory
        bytes = std::min(bytes, arena_bytes - 2 * red_zone_bytes - alignment);
    }
    unsigned char* p = arena_ + arena_top_;
    arena_top_ += bytes;
    red_zones_.push_back(arena_ + arena_top_);
    arena_top_ += red_zone_bytes;
    if (checker() != nullptr) checker()->arena_array(p, bytes, array);
    return p;
}

void* Block::shared_array(const void* key, std::size_t bytes, const char* array) {
    const InRuntime in_runtime;
    const auto found = statics_.find(key);
    if (found != statics_.end()) return found->second;
    static_bytes_ += bytes;
    if (static_bytes_ > static_shared_max)
        report("shared_limit", "static shared memory exceeds 48 KiB with " + std::string(array));
    return statics_[key] = allocate(bytes, array);
}

void* Block::dynamic_array(int ordinal, std::size_t bytes, std::size_t used, const char* array,
                           const Location& location) {
    const InRuntime in_runtime;
    if (static_cast<std::size_t>(ordinal) < dynamics_.size())
        return dynamics_[static_cast<std::size_t>(ordinal)];
    if (used > shape_.dynamic_bytes)
        report("shared_limit", "the kernel takes " + std::to_string(used) +
                                   " bytes of dynamic shared memory at " + place(location) +
                                   ", the launch gave " + std::to_string(shape_.dynamic_bytes));
    dynamics_.push_back(allocate(bytes, array));
    return dynamics_.back();
}

void Block::check_red_zones() {
    for (const unsigned char* zone : red_zones_)
        if (std::any_of(zone, zone + red_zone_bytes, [](unsigned char c) { return c != poison; })) {
            report("shared_red_zone", "a write landed between two shared arrays");
            return;
        }
}

}  // namespace simt
