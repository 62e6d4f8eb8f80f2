// Shuffles, votes, barriers, atomics.

#include <algorithm>

#include "kernels/cuda/conformance.hpp"
#include "kernels/simt/simt.hpp"

namespace attest::cuda {
namespace {

__global__ void shuffles(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x, all = 0xffffffffu;
    const std::uint32_t x = in[lane];
    out[lane] = __shfl_sync(all, x, static_cast<int>(lane * 7));
    out[lane + 32] = __shfl_xor_sync(all, x, 5);
    out[lane + 64] = __shfl_up_sync(all, x, 3u);
    out[lane + 96] = __shfl_down_sync(all, x, 3u);
    out[lane + 128] = __shfl_sync(all, x, 3, 8);
    out[lane + 160] = __shfl_up_sync(all, x, 3u, 8);
    out[lane + 192] = __shfl_down_sync(all, x, 3u, 8);
    out[lane + 224] = __shfl_xor_sync(all, x, 9, 8);
}
Words expect_shuffles(const Words& x) {
    Words out;
    const auto ask = [&](auto source) {
        for (int lane = 0; lane < lanes; ++lane)
            out.push_back(x[static_cast<std::size_t>(source(lane))]);
    };
    ask([](int l) { return l * 7 % 32; });
    ask([](int l) { return l ^ 5; });
    ask([](int l) { return l < 3 ? l : l - 3; });
    ask([](int l) { return l + 3 > 31 ? l : l + 3; });
    ask([](int l) { return l / 8 * 8 + 3; });
    ask([](int l) { return l % 8 < 3 ? l : l - 3; });
    ask([](int l) { return l % 8 + 3 > 7 ? l : l + 3; });
    // With a width, an earlier segment may be read, a later one may not.
    ask([](int l) { return (l ^ 9) / 8 <= l / 8 ? l ^ 9 : l; });
    return out;
}

__global__ void votes(const std::uint32_t* in, std::uint32_t* out) {
    const unsigned lane = threadIdx.x;
    const int yes = (in[lane] & 1u) != 0 ? 1 : 0;
    out[lane] = __ballot_sync(0xffffffffu, yes);
    out[lane + 32] = static_cast<std::uint32_t>(__any_sync(0xffffffffu, yes) != 0);
    out[lane + 64] = static_cast<std::uint32_t>(__all_sync(0xffffffffu, yes) != 0);
    out[lane + 96] = static_cast<std::uint32_t>(__syncthreads_count(yes));
    out[lane + 128] = static_cast<std::uint32_t>(__syncthreads_or(yes) != 0);
    out[lane + 160] = static_cast<std::uint32_t>(__syncthreads_and(yes) != 0);
}
Words expect_votes(const Words& x) {
    std::uint32_t ballot = 0, count = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        const std::uint32_t yes = x[static_cast<std::size_t>(lane)] & 1u;
        ballot |= yes << lane;
        count += yes;
    }
    Words out;
    for (const std::uint32_t answer : {ballot, count > 0 ? 1u : 0u, count == 32 ? 1u : 0u, count,
                                       count > 0 ? 1u : 0u, count == 32 ? 1u : 0u})
        out.insert(out.end(), lanes, answer);
    return out;
}

/// Half a warp by itself, while the other half meets elsewhere.
__global__ void halves(const std::uint32_t* in, std::uint32_t* out) {
    SIMT_SHARED(std::uint32_t, cells, [lanes]);
    const unsigned lane = threadIdx.x;
    const unsigned mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    cells[lane] = in[lane];
    __syncwarp(mask);
    out[lane] = cells[lane ^ 15u];
    out[lane + 32] = __shfl_xor_sync(mask, in[lane], 3);
    out[lane + 64] = __ballot_sync(mask, static_cast<int>(in[lane] & 2u));
    out[lane + 96] = static_cast<std::uint32_t>(__any_sync(mask, lane == 5 ? 1 : 0) != 0);
    out[lane + 128] = static_cast<std::uint32_t>(__all_sync(mask, lane < 16 ? 1 : 0) != 0);
}
Words expect_halves(const Words& x) {
    Words out(5 * lanes);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        out[lane] = x[lane ^ 15u];
        out[lane + 32] = x[lane ^ 3u];
        for (std::uint32_t other = lane / 16 * 16; other < lane / 16 * 16 + 16; ++other)
            out[lane + 64] |= (x[other] >> 1 & 1u) << other;
        out[lane + 96] = out[lane + 128] = lane < 16 ? 1 : 0;
    }
    return out;
}

/// Each lane on a cell of its own, which holds in[lane]; then what it held before and holds after.
constexpr int atomics = 10;
__global__ void atomics_apart(const std::uint32_t* in, std::uint32_t* out) {
    SIMT_SHARED(std::uint32_t, cells, [atomics][lanes]);
    const unsigned lane = threadIdx.x;
    const std::uint32_t x = in[lane], y = in[lane + 32];
    for (int n = 0; n < atomics; ++n) cells[n][lane] = x;
    const std::uint32_t old[atomics] = {
        atomicAdd(&cells[0][lane], y),        atomicSub(&cells[1][lane], y),
        atomicMax(&cells[2][lane], y),        atomicMin(&cells[3][lane], y),
        atomicOr(&cells[4][lane], y),         atomicAnd(&cells[5][lane], y),
        atomicExch(&cells[6][lane], y),       atomicCAS(&cells[7][lane], x, y),
        atomicCAS(&cells[8][lane], x + 1, y), atomicInc(&cells[9][lane], y)};
    for (int n = 0; n < atomics; ++n) {
        out[n * lanes + static_cast<int>(lane)] = old[n];
        out[(n + atomics) * lanes + static_cast<int>(lane)] = cells[n][lane];
    }
}
Words expect_atomics_apart(const Words& in) {
    Words out(2 * atomics * lanes);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::uint32_t x = in[lane], y = in[lane + 32];
        const std::uint32_t after[atomics] = {
            x + y, x - y, std::max(x, y),    std::min(x, y), x | y, x & y, y,
            y,     x,     x >= y ? 0 : x + 1};
        for (std::size_t n = 0; n < atomics; ++n) {
            out[n * lanes + lane] = x;
            out[(n + atomics) * lanes + lane] = after[n];
        }
    }
    return out;
}

/// All lanes on the same cells, where the order does not show.
__global__ void atomics_together(const std::uint32_t* in, std::uint32_t* out) {
    SIMT_SHARED(std::uint32_t, cells, [3]);
    SIMT_SHARED(int, signed_cells, [3]);
    SIMT_SHARED(float, sum, [1]);
    const unsigned lane = threadIdx.x;
    if (lane < 3) {
        cells[lane] = 0;
        signed_cells[lane] = 0;
    }
    if (lane == 0) sum[0] = 0.0f;
    __syncthreads();
    const int x = static_cast<int>(in[lane] >> 20) - 2048;
    atomicAdd(&cells[0], in[lane]);
    atomicOr(&cells[1], 1u << lane);
    atomicInc(&cells[2], 6u);
    atomicAdd(&signed_cells[0], x);
    atomicMax(&signed_cells[1], x);
    atomicMin(&signed_cells[2], x);
    atomicAdd(&sum[0], static_cast<float>(x));
    __threadfence_block();
    __syncthreads();
    for (int n = 0; n < 3; ++n) {
        out[n * lanes + static_cast<int>(lane)] = cells[n];
        out[(n + 3) * lanes + static_cast<int>(lane)] = static_cast<std::uint32_t>(signed_cells[n]);
    }
    out[6 * lanes + static_cast<int>(lane)] = static_cast<std::uint32_t>(static_cast<int>(sum[0]));
}
Words expect_atomics_together(const Words& in) {
    std::uint32_t total = 0;
    int sum = 0, most = 0, least = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const int x = static_cast<int>(in[lane] >> 20) - 2048;
        total += in[lane];
        sum += x;
        most = std::max(most, x);
        least = std::min(least, x);
    }
    Words out;
    // atomicInc counts 0 to 6 and starts again: 32 of them leave 32 mod 7.
    for (const std::uint32_t word :
         {total, 0xffffffffu, 32u % 7u, static_cast<std::uint32_t>(sum),
          static_cast<std::uint32_t>(most), static_cast<std::uint32_t>(least),
          static_cast<std::uint32_t>(sum)})
        out.insert(out.end(), lanes, word);
    return out;
}

}  // namespace

std::vector<WarpQuestion> questions_of_warps() {
    const Words in = scrambled(2 * lanes);
    return {{"shuffles", shuffles, in, expect_shuffles(in)},
            {"votes and barriers that count", votes, in, expect_votes(in)},
            {"half warps", halves, in, expect_halves(in)},
            {"atomics, each lane its own cell", atomics_apart, in, expect_atomics_apart(in)},
            {"atomics on one cell", atomics_together, in, expect_atomics_together(in)}};
}

}  // namespace attest::cuda
