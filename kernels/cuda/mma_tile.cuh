#pragma once
// Tiles of keys and values in shared memory, as cuda_flash_mma fills them: 128 threads, 16 bytes at
// a time, while the tile before is worked on.

#include "kernels/cuda/care.hpp"
#include "kernels/cuda/row.cuh"

namespace attest::cuda {

constexpr int mma_rows = 64, mma_tile = 32;

template <int DIM>
struct MmaTiles {
    static constexpr int pitch =
        DIM + 8;  ///< eight elements of padding: ldmatrix rows fall into different banks
    static constexpr int chunks = DIM / 8;  ///< of 16 bytes
    static constexpr std::size_t bytes() { return 2 * (mma_rows + 4 * mma_tile) * pitch + 64; }
};

/// How many of the elements [c, c + 8) a row of dim has.
__device__ inline int chunk_elements(std::int64_t dim, int c) {
    return static_cast<int>(min(max(dim - c, std::int64_t{0}), std::int64_t{8}));
}

/// One 16-byte chunk of a row into shared memory, `elements` of it and zeros: cp.async where the
/// address allows, plain loads otherwise.
template <typename T>
__device__ inline void load_chunk(T* to, const T* row, std::int64_t stride, int c, int elements,
                                  bool aligned) {
    if (aligned) {
        simt::cp_async_16(to, elements > 0 ? row + c : row, elements * 2);
        return;
    }
    for (int e = 0; e < 8; ++e)
        to[e] = e < elements ? row[(c + e) * stride] : Number<T>::round(0.0f);
}

template <typename T>
__device__ inline bool finite(T x) {
    return fabsf(Number<T>::read(x)) < INFINITY;
}

template <typename T, int DIM>
__device__ inline bool holds_nonfinite(const T* vs) {
    bool found = false;
    for (int x = static_cast<int>(threadIdx.x); x < mma_tile * DIM; x += 128)
        found = found || !finite(vs[x / DIM * MmaTiles<DIM>::pitch + x % DIM]);
    return found;
}

/// Keys [k0, k0 + 32) and their values, zeros from `end` on. key0 and value0 are key 0's, from
/// which the others lie a stride apart but in a paged cache. A thread loads the same channels of
/// each row.
template <typename T, int DIM, Care care>
__device__ inline void load_tile(const Params& p, const CudaRow& any, const T* key0,
                                 const T* value0, T* ks, T* vs, std::int64_t k0, std::int64_t end) {
    constexpr int pitch = MmaTiles<DIM>::pitch, chunks = MmaTiles<DIM>::chunks;
    constexpr int copied = mma_tile + care.rows_too_many;
    const bool paged = p.block_table != nullptr;
    constexpr int step = 128 / chunks;
    const int c = static_cast<int>(threadIdx.x) % chunks * 8;
    const int key_elements = chunk_elements(p.dim_qk, c), elements = chunk_elements(p.dim_v, c);
    const int real = static_cast<int>(min(end - k0, std::int64_t{copied}));
    if (copied == mma_tile && real >= mma_tile && !paged && p.chunks_aligned && p.dim_qk == DIM &&
        p.dim_v == DIM) {  // nothing to look at: what nearly every tile of a long context is
        const int r0 = static_cast<int>(threadIdx.x) / chunks;
        const T* key = key0 + (k0 + r0) * p.k.stride[2] + c;
        const T* value = value0 + (k0 + r0) * p.v.stride[2] + c;
#pragma unroll
        for (int r = 0; r < mma_tile; r += step) {
            simt::cp_async_16(&ks[(r0 + r) * pitch + c], key + r * p.k.stride[2]);
            simt::cp_async_16(&vs[(r0 + r) * pitch + c], value + r * p.v.stride[2]);
        }
        simt::cp_async_commit();
        return;
    }
    for (int r = static_cast<int>(threadIdx.x) / chunks; r < copied; r += step) {
        const bool inside = r < real;
        if (!care.tail_cleared && !inside) continue;
        const std::int64_t j = inside ? k0 + r : 0;
        const T* key = paged ? any.key<T>(j) : key0 + j * p.k.stride[2];
        const T* value = paged ? any.value<T>(j) : value0 + j * p.v.stride[2];
        if (care.key_tail_cleared || inside)
            load_chunk<T>(&ks[r * pitch + c], key, p.k.stride[3], c, inside ? key_elements : 0,
                          p.chunks_aligned);
        load_chunk<T>(&vs[r * pitch + c], value, p.v.stride[3], c, inside ? elements : 0,
                      p.chunks_aligned);
    }
    simt::cp_async_commit();
}

}  // namespace attest::cuda
