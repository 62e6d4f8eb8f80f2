#pragma once
// cuda_flash_mma: tensor cores for both products, cp.async double buffering; f16 and bf16.
//
// Four warps of 16 query rows; a tile is 32 keys. Scores stay in the accumulator fragments of
// mma.m16n8k16: lane (g, t) of a warp, g = lane / 4 and t = lane mod 4, holds rows g and g + 8,
// columns 8n + 2t and 8n + 2t + 1. The same fragments, rounded to the input format, are the A
// operand of the second product, so P never leaves registers. f32 accumulation throughout. While
// tile n is worked on, tile n + 1 is on its way; keys behind the end are zeros. A tile that every
// query of the block sees whole, and whose scores are plain, passes without a look at the mask. In
// another, a tensor core cannot skip a hidden key, and 0 * NaN is NaN: where its values are not
// all finite it takes a slower second product that does skip. Every loop over fragments is
// unrolled: an array that is indexed by a variable lies in memory and not in registers.

#include "kernels/cuda/mma_tile.cuh"

namespace attest::cuda {

template <Care care>
__device__ inline float quad_max(float x) {
    x = larger(x, __shfl_xor_sync(0xffffffffu, x, 1));
    if constexpr (!care.all_lanes_compared) return x;
    return larger(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
template <Care care>
__device__ inline float quad_sum(float x) {
    constexpr unsigned mask = care.all_lanes_named ? 0xffffffffu : 0x0000ffffu;
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    if constexpr (!care.all_lanes_summed) return x;
    return x + __shfl_xor_sync(mask, x, 2);
}

template <typename T, int DIM, Care care>
struct MmaWarp {
    static constexpr int pitch = MmaTiles<DIM>::pitch;
    float out[DIM / 8][4], m[2], l[2];
    std::uint32_t query[DIM / 16][4];
    int lane, row0;  ///< row0: first of the warp's 16 rows, in the block

    __device__ void scores(const T* ks, float (&s)[mma_tile / 8][4]) const {
#pragma unroll
        for (int n = 0; n < mma_tile / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) s[n][e] = 0.0f;
#pragma unroll
        for (int n = 0; n < mma_tile / 16; ++n)
#pragma unroll
            for (int c = 0; c < DIM / 16; ++c) {
                std::uint32_t key[4];
                simt::ldmatrix_x4(
                    key,
                    &ks[(n * 16 + lane % 8 + lane / 16 * 8) * pitch + c * 16 + lane / 8 % 2 * 8]);
                simt::mma_m16n8k16<T>(s[2 * n], query[c], key[0], key[1]);
                simt::mma_m16n8k16<T>(s[2 * n + 1], query[c], key[2], key[3]);
            }
    }

    /// Masks and exponentiates the tile's scores in place; grows m and l and rescales the output.
    template <bool whole>
    __device__ void soften(const Params& p, std::int64_t b, std::int64_t h, std::int64_t q0,
                           std::int64_t k0, float (&s)[mma_tile / 8][4]) {
        float old[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const std::int64_t i = q0 + row0 + lane / 4 + half * 8;
            const CudaRow row(p, b, h, i);
            const bool real = i < p.len_q && row.is_query();
            float most = -INFINITY;
#pragma unroll
            for (int n = 0; n < mma_tile / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& x = s[n][half * 2 + e];
                    x *= p.scale_f32;
                    if constexpr (!whole)
                        x = real ? row.score<T>(x, k0 + n * 8 + lane % 4 * 2 + e) : -INFINITY;
                    most = larger(most, x);
                }
            const float grown = larger(m[half], quad_max<care>(most));
            old[half] = rescale(m[half], grown);
            m[half] = grown;
            float sum = 0.0f;
#pragma unroll
            for (int n = 0; n < mma_tile / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& x = s[n][half * 2 + e];
                    x = weight(x, grown);
                    sum += x;
                }
            l[half] = l[half] * old[half] + quad_sum<care>(sum);
        }
        if (old[0] == 1.0f && old[1] == 1.0f) return;
#pragma unroll
        for (int d = 0; d < DIM / 8; ++d)
#pragma unroll
            for (int e = 0; e < 4; ++e) out[d][e] *= old[e / 2];
    }

    __device__ void add_values(const T* vs, const float (&s)[mma_tile / 8][4]) {
#pragma unroll
        for (int n = 0; n < mma_tile / 16; ++n) {
            const std::uint32_t weights[4] = {Number<T>::pack(s[2 * n][0], s[2 * n][1]),
                                              Number<T>::pack(s[2 * n][2], s[2 * n][3]),
                                              Number<T>::pack(s[2 * n + 1][0], s[2 * n + 1][1]),
                                              Number<T>::pack(s[2 * n + 1][2], s[2 * n + 1][3])};
#pragma unroll
            for (int d = 0; d < DIM / 16; ++d) {
                std::uint32_t value[4];
                const T* rows =
                    &vs[(n * 16 + lane % 8 + lane / 8 % 2 * 8) * pitch + d * 16 + lane / 16 * 8];
                if constexpr (care.values_transposed)
                    simt::ldmatrix_x4_trans(value, rows);
                else
                    simt::ldmatrix_x4(value, rows);
                simt::mma_m16n8k16<T>(out[2 * d], weights, value[0], value[1]);
                simt::mma_m16n8k16<T>(out[2 * d + 1], weights, value[2], value[3]);
            }
        }
    }

    /// add_values for a tile with NaN or infinity in it: each weight visits its quad, hidden keys
    /// are skipped.
    __device__ void add_values_one_by_one(const T* vs, const float (&s)[mma_tile / 8][4]) {
#pragma unroll
        for (int n = 0; n < mma_tile / 8; ++n)
#pragma unroll 1
            for (int owner = 0; owner < 4; ++owner)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float w = __shfl_sync(0xffffffffu, s[n][e], (lane & ~3) | owner);
                    if (hidden(w)) continue;
                    const float rounded = Number<T>::read(Number<T>::round(w));
                    const T* row = &vs[(n * 8 + owner * 2 + e % 2) * pitch + lane % 4 * 2];
#pragma unroll
                    for (int d = 0; d < DIM / 8; ++d)
#pragma unroll
                        for (int c = 0; c < 2; ++c)
                            out[d][e / 2 * 2 + c] += rounded * Number<T>::read(row[d * 8 + c]);
                }
    }
};

/// The blocks a multiprocessor is to hold are named, so that ptxas does not save registers for one
/// more and spill.
template <typename T, int DIM, unsigned care_code = 0>
__global__ void __launch_bounds__(128, DIM <= 64 ? 3 : 2) flash_mma_kernel(Params p) {
    constexpr Care care = decoded(care_code);
    constexpr int pitch = MmaTiles<DIM>::pitch, chunks = MmaTiles<DIM>::chunks;
    SIMT_DYNAMIC_SHARED(shared);
    T* qs = shared.take<T>(mma_rows * pitch, "qs");
    T* ks = shared.take<T>(2 * mma_tile * pitch, "ks");
    T* vs = shared.take<T>(2 * mma_tile * pitch, "vs");
    const std::int64_t h = blockIdx.y, b = blockIdx.z,
                       q0 = static_cast<std::int64_t>(blockIdx.x) * mma_rows;
    // Neither end of what a query sees falls from one query to the next.
    const CudaRow any(p, b, h, q0), last(p, b, h, min(q0 + mma_rows, any.queries) - 1);
    const std::int64_t first = any.first_key() / mma_tile * mma_tile;
    const std::int64_t end = any.is_query() ? last.end_key() : 0;
    // Of [whole_first, whole_end) every query sees every key, and nothing is added to its score.
    const bool plain =
        p.mask_kind == ATTEST_MASK_NONE && p.alibi_slopes == nullptr && !(p.softcap_f32 > 0);
    const std::int64_t whole_first = last.first_key(), whole_end = plain ? any.end_key() : 0;

    for (int x = static_cast<int>(threadIdx.x); x < mma_rows * chunks; x += 128) {
        const int r = x / chunks, c = x % chunks * 8;
        const bool inside = q0 + r < p.len_q;
        load_chunk<T>(&qs[r * pitch + c], at<T>(p.q, b, h, inside ? q0 + r : 0, 0), p.q.stride[3],
                      c, inside ? chunk_elements(p.dim_qk, c) : 0, p.chunks_aligned);
    }
    const T *key0 = at<T>(p.k, b, any.kv_head, 0, 0), *value0 = at<T>(p.v, b, any.kv_head, 0, 0);
    MmaWarp<T, DIM, care> warp;
    warp.lane = static_cast<int>(threadIdx.x) % 32;
    warp.row0 = static_cast<int>(threadIdx.x) / 32 * 16;
    for (int half = 0; half < 2; ++half) {
        warp.m[half] = any.first_max();
        warp.l[half] = any.first_sum();
    }
#pragma unroll
    for (int d = 0; d < DIM / 8; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e) warp.out[d][e] = 0.0f;

    int buffer = 0;
    if (first < end) load_tile<T, DIM, care>(p, any, key0, value0, ks, vs, first, end);
    for (std::int64_t k0 = first; k0 < end; k0 += mma_tile, buffer ^= 1) {
        if (!care.idle_warps_stay && q0 + warp.row0 >= p.len_q) continue;
        const bool more = k0 + mma_tile < end;
        const int other = (buffer ^ 1) * mma_tile * pitch, mine = buffer * mma_tile * pitch;
        if (more)
            load_tile<T, DIM, care>(p, any, key0, value0, ks + other, vs + other, k0 + mma_tile,
                                      end);
        if (more || !care.last_copy_awaited)
            simt::cp_async_wait<1>();
        else
            simt::cp_async_wait<0>();
        if constexpr (care.barrier_after_load) __syncthreads();
        if (k0 == first)
#pragma unroll
            for (int c = 0; c < DIM / 16; ++c)
                simt::ldmatrix_x4(
                    warp.query[c],
                    &qs[(warp.row0 + warp.lane % 16) * pitch + c * 16 + warp.lane / 16 * 8]);
        float s[mma_tile / 8][4];
        warp.scores(ks + mine, s);
        const bool whole = k0 >= whole_first && k0 + mma_tile <= whole_end;
        if (whole)
            warp.template soften<true>(p, b, h, q0, k0, s);
        else
            warp.template soften<false>(p, b, h, q0, k0, s);
        if (!whole && __syncthreads_or(holds_nonfinite<T, DIM>(vs + mine) ? 1 : 0) != 0)
            warp.add_values_one_by_one(vs + mine, s);
        else
            warp.add_values(vs + mine, s);
        if constexpr (care.barrier_before_load) __syncthreads();
    }
    if (first >= end) {  // nothing to see: the query tile is still on its way
        simt::cp_async_commit();
        simt::cp_async_wait<0>();
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const std::int64_t i = q0 + warp.row0 + warp.lane / 4 + half * 8;
        if (i >= p.len_q) continue;
        const CudaRow row(p, b, h, i);
        const float l = warp.l[half];
#pragma unroll
        for (int d = 0; d < DIM / 8; ++d)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int c = d * 8 + warp.lane % 4 * 2 + e;
                if (c < p.dim_v)
                    *at<T>(p.o, b, h, i, c) = Number<T>::round(
                        l == 0.0f || !row.is_query() ? 0.0f : warp.out[d][half * 2 + e] / l);
            }
        if (warp.lane % 4 == 0) row.write_lse(warp.m[half], l);
    }
}

}  // namespace attest::cuda
