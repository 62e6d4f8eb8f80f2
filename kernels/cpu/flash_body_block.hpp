#pragma once
// The blocking of the plain flash kernel.

#include <cstdint>

#include "kernels/cpu/call.hpp"

namespace attest::kernel {

inline constexpr std::int64_t plain_rows = 8;   ///< queries a block
inline constexpr std::int64_t plain_tile = 16;  ///< keys a tile

/// Queries [row0, row0 + rows) of one head of one segment.
struct QueryBlock {
    Segment segment;
    std::int64_t head = 0, kv_head = 0, row0 = 0, rows = 0;
};

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept {
    return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace attest::kernel
