#pragma once
// The numbers where kernels go wrong: powers of two and tile edges, and one on either side of them.
// Leaning on them was measured to find planted bugs 3 to 200 times sooner than uniform draws.

#include <cstdint>
#include <utility>
#include <vector>

namespace attest::search {

/// Lengths from 1 to `most`: 2^k, 16 k (to 256), the tiles in use (64, 80, 96, ...), each -1, 0,
/// +1. Sorted, without repeats.
std::vector<std::int64_t> landmark_lengths(std::int64_t most);

/// Of those, the lengths from `long_from` up (100: where a second or third tile begins).
std::vector<std::int64_t> long_landmarks(std::int64_t most, std::int64_t long_from);

/// Head dimensions: those of real models (40, 64, 72, 80, 96, 112, 128, ..., 576), small ones, and
/// ones that are no multiple of a vector's width.
const std::vector<std::int64_t>& landmark_dims();

/// Head dimensions of queries and values where real kernels have two: latent attention's 192 beside
/// 128 and 576 beside 512 (DeepSeek), 96 beside 64 (MiniCPM3), and FlashAttention's 64 beside more.
const std::vector<std::pair<std::int64_t, std::int64_t>>& unequal_dims();

}  // namespace attest::search
