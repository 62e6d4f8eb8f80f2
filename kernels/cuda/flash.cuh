#pragma once
// cuda_flash: tiles of K and V in shared memory, online softmax, four warps of four query rows
// each.
//
// A lane owns one key of the tile while scores are made and `columns` output columns while values
// are added; the weights cross between the two through shared memory, with a __syncwarp, since a
// warp never reads another's rows. Accumulates in f32; weights are rounded to the input format
// before the second product, their sum is not. DIM is dim_qk and dim_v rounded up.

#include "kernels/cuda/care.hpp"
#include "kernels/cuda/row.cuh"

namespace attest::cuda {

template <Care care = Care{}>
__device__ inline float warp_max(float x) {
    constexpr int widest = care.all_lanes_compared ? 16 : 8;
    for (int step = widest; step != 0; step /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}
template <Care care = Care{}>
__device__ inline float warp_sum(float x) {
    constexpr unsigned mask = care.all_lanes_named ? 0xffffffffu : 0x0000ffffu;
    for (int step = 16; step != 0; step /= 2) x += __shfl_xor_sync(mask, x, step);
    return x;
}

template <typename T, int DIM, unsigned care_code = 0>
__global__ void __launch_bounds__(128) flash_kernel(Params p) {
    constexpr Care care = decoded(care_code);
    constexpr int tile = 32, warps = 4, rows_per_warp = 4, rows = warps * rows_per_warp;
    constexpr int columns = (DIM + 31) / 32;
    SIMT_DYNAMIC_SHARED(shared);
    float* qs = shared.take<float>(rows * DIM, "qs");        // [rows][DIM]
    float* ks = shared.take<float>(tile * (DIM + 1), "ks");  // [tile][DIM + 1]: no bank twice
    float* vs = shared.take<float>(tile * DIM, "vs");        // [tile][DIM]
    float* ps = shared.take<float>(rows * tile, "ps");       // [rows][tile]
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    const std::int64_t h = blockIdx.y, b = blockIdx.z;
    const std::int64_t q0 = static_cast<std::int64_t>(blockIdx.x) * rows;

    for (int x = thread; x < rows * DIM; x += 128) {
        const std::int64_t i = q0 + x / DIM, c = x % DIM;
        qs[x] = i < p.len_q && c < p.dim_qk ? Number<T>::read(*at<T>(p.q, b, h, i, c)) : 0.0f;
    }
    float m[rows_per_warp], l[rows_per_warp], sum[rows_per_warp][columns];
    std::int64_t first = p.len_kv, end = 0;
    for (int r = 0; r < rows; ++r) {  // the block's keys: all that any of its rows may see
        const CudaRow row(p, b, h, q0 + r);
        if (!row.is_query() || q0 + r >= p.len_q) continue;
        first = min(first, row.first_key());
        end = max(end, row.end_key());
    }
    for (int r = 0; r < rows_per_warp; ++r) {
        const CudaRow row(p, b, h, q0 + warp * rows_per_warp + r);
        m[r] = row.first_max();
        l[r] = row.first_sum();
        for (int c = 0; c < columns; ++c) sum[r][c] = 0.0f;
    }
    for (std::int64_t k0 = first / tile * tile; k0 < end; k0 += tile) {
        if (!care.idle_warps_stay && q0 + warp * rows_per_warp >= p.len_q)
            continue;
        if constexpr (care.barrier_before_load) __syncthreads();
        constexpr int copied = tile + care.rows_too_many;
        for (int x = thread; x < copied * DIM; x += 128) {
            const CudaRow any(p, b, h, q0);
            const std::int64_t j = k0 + x / DIM, c = x % DIM;
            const bool inside = j < end && j < any.keys;
            if (!care.tail_cleared && !inside) continue;
            ks[x / DIM * (DIM + 1) + c] =
                inside && c < p.dim_qk ? Number<T>::read(any.key<T>(j)[c * p.k.stride[3]]) : 0.0f;
            vs[x] =
                inside && c < p.dim_v ? Number<T>::read(any.value<T>(j)[c * p.v.stride[3]]) : 0.0f;
        }
        if constexpr (care.barrier_after_load) __syncthreads();
        for (int r = 0; r < rows_per_warp; ++r) {
            const int local = warp * rows_per_warp + r;
            const CudaRow row(p, b, h, q0 + local);
            float product = 0.0f;
            for (int c = 0; c < DIM; ++c) product += qs[local * DIM + c] * ks[lane * (DIM + 1) + c];
            const bool real = row.is_query() && q0 + local < p.len_q;
            const float s = real ? row.score<T>(product * p.scale_f32, k0 + lane) : -INFINITY;
            const float grown = larger(m[r], warp_max<care>(s));
            const float old = rescale(m[r], grown), w = weight(s, grown);
            m[r] = grown;
            l[r] = l[r] * old + warp_sum<care>(w);
            const unsigned visible = __ballot_sync(0xffffffffu, s != -INFINITY);
            ps[local * tile + lane] = Number<T>::read(Number<T>::round(w));
            if constexpr (care.syncwarp_after_weights) __syncwarp();
            for (int c = 0; c < columns; ++c) {
                if (lane + 32 * c >= DIM) continue;
                float a = sum[r][c] * old;
                for (int j = 0; j < tile; ++j)
                    if ((visible >> j & 1u) != 0)
                        a += ps[local * tile + j] * vs[j * DIM + lane + 32 * c];
                sum[r][c] = a;
            }
            __syncwarp();
        }
    }
    for (int r = 0; r < rows_per_warp; ++r) {
        const std::int64_t i = q0 + warp * rows_per_warp + r;
        if (i >= p.len_q) continue;
        const CudaRow row(p, b, h, i);
        for (int c = 0; c < columns; ++c)
            if (lane + 32 * c < p.dim_v)
                *at<T>(p.o, b, h, i, lane + 32 * c) =
                    Number<T>::round(l[r] == 0.0f || !row.is_query() ? 0.0f : sum[r][c] / l[r]);
        if (lane == 0) row.write_lse(m[r], l[r]);
    }
}

template <int DIM>
constexpr std::size_t flash_shared_bytes() {
    return sizeof(float) * (16 * DIM + 32 * (DIM + 1) + 32 * DIM + 16 * 32 + 16);
}

}  // namespace attest::cuda
