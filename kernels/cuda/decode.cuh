#pragma once
// cuda_decode: few queries, many keys. Each block takes one query row and one split of its keys;
// four warps walk the split 32 keys at a time, a lane a key; the last block of a row to arrive
// merges the partial results (m, l, sum) of all splits.
//
// The arrival counter orders the blocks: a partial result is written, fenced, then counted; whoever
// counts last reads all of them. Keys may lie in pages. Rotary positions are applied to q and k as
// they are read. Accumulates in f32.

#include "kernels/cuda/flash.cuh"

namespace attest::cuda {

constexpr int decode_warps = 4, decode_dim_max = 256, decode_columns = decode_dim_max / 32;

/// Pair n of the rotated channels: which two they are, and by what they turn at a position. The
/// angle needs more than f32: a position of 1e5 leaves f32 no digits of the turn.
struct RotatedPair {
    std::int64_t first, second;
    float cosine, sine;

    __device__ RotatedPair(const Params& p, const double* frequency, std::int64_t n,
                           std::int64_t position) {
        first = p.rope_kind == ATTEST_ROPE_INTERLEAVED ? 2 * n : n;
        second = p.rope_kind == ATTEST_ROPE_INTERLEAVED ? 2 * n + 1 : n + p.rope_dims / 2;
        const double angle = static_cast<double>(position) * frequency[n];
        cosine = static_cast<float>(cos(angle));
        sine = static_cast<float>(sin(angle));
    }
};

/// The query into shared memory, rotated; frequency is [rope_dims / 2].
template <typename T>
__device__ inline void load_query(const CudaRow& row, double* frequency, float* q) {
    const Params& p = row.p;
    const T* query = at<T>(p.q, row.b, row.h, row.i, 0);
    const auto read = [&](std::int64_t c) { return Number<T>::read(query[c * p.q.stride[3]]); };
    for (std::int64_t c = p.rope_dims + threadIdx.x; c < p.dim_qk; c += 128) q[c] = read(c);
    for (std::int64_t n = threadIdx.x; n < p.rope_dims / 2; n += 128) {
        frequency[n] = pow(p.rope_base,
                           -2.0 * static_cast<double>(n) / static_cast<double>(p.rope_dims));
        const RotatedPair pair(p, frequency, n, p.rope_offset + row.i + row.offset);
        const float a = read(pair.first), b = read(pair.second);
        q[pair.first] = a * pair.cosine - b * pair.sine;
        q[pair.second] = b * pair.cosine + a * pair.sine;
    }
}

/// q.k, the key rotated as it is read.
template <typename T>
__device__ inline float product_with(const CudaRow& row, const double* frequency, const float* q,
                                     std::int64_t j) {
    const Params& p = row.p;
    const T* key = row.key<T>(j);
    const auto read = [&](std::int64_t c) { return Number<T>::read(key[c * p.k.stride[3]]); };
    float sum = 0.0f;
    for (std::int64_t n = 0; n < p.rope_dims / 2; ++n) {
        const RotatedPair pair(p, frequency, n, p.rope_offset + j);
        const float a = read(pair.first), b = read(pair.second);
        sum += q[pair.first] * (a * pair.cosine - b * pair.sine);
        sum += q[pair.second] * (b * pair.cosine + a * pair.sine);
    }
    constexpr int each = 16 / sizeof(T);  // of a lane's own key: 16 bytes are one access, not eight
    std::int64_t c = p.rope_dims;
    if (p.chunks_aligned && c % each == 0)
        for (; c + each <= p.dim_qk; c += each) {
            T chunk[each];
            memcpy(chunk, __builtin_assume_aligned(key + c, 16), sizeof chunk);
#pragma unroll
            for (int e = 0; e < each; ++e) sum += q[c + e] * Number<T>::read(chunk[e]);
        }
    for (; c < p.dim_qk; ++c) sum += q[c] * read(c);
    return sum;
}

/// The running softmax of one warp: m and l are the same in all lanes, sum holds columns lane, lane
/// + 32, ...
struct Running {
    float m, l, sum[decode_columns];
};

template <typename T>
__device__ inline void walk_split(const CudaRow& row, const double* frequency, const float* q,
                                  std::int64_t first, std::int64_t end, int warp, int lane,
                                  Running& r) {
    const Params& p = row.p;
    for (std::int64_t k0 = first + warp * 32; k0 < end; k0 += decode_warps * 32) {
        const std::int64_t j = k0 + lane;
        float s = -INFINITY;
        if (j < end && j >= row.first_key() && j < row.end_key())
            s = row.score<T>(product_with<T>(row, frequency, q, j) * p.scale_f32, j);
        const float grown = larger(r.m, warp_max(s));
        const float old = rescale(r.m, grown), w = weight(s, grown);
        r.m = grown;
        r.l = r.l * old + warp_sum(w);
        const float rounded = Number<T>::read(Number<T>::round(w));
        const unsigned visible = __ballot_sync(0xffffffffu, s != -INFINITY);
        for (int c = 0; c < decode_columns; ++c) r.sum[c] *= old;
        for (int source = 0; source < 32; ++source) {
            const float weight_of = __shfl_sync(0xffffffffu, rounded, source);
            if ((visible >> source & 1u) == 0) continue;
            const T* v = row.value<T>(k0 + source);
            for (int c = 0; c < decode_columns; ++c)
                if (lane + 32 * c < p.dim_v)
                    r.sum[c] += weight_of * Number<T>::read(v[(lane + 32 * c) * p.v.stride[3]]);
        }
    }
}

/// Adds a partial result (m, l, sum of one column) to another.
__device__ inline void merge(float& m, float& l, float& sum, float m2, float l2, float sum2) {
    const float grown = larger(m, m2);
    const float a = rescale(m, grown), b = rescale(m2, grown);
    l = l * a + l2 * b;
    sum = sum * a + sum2 * b;
    m = grown;
}

template <typename T>
__global__ void __launch_bounds__(128) decode_kernel(Params p) {
    SIMT_SHARED(float, q, [decode_dim_max]);
    SIMT_SHARED(double, frequency, [decode_dim_max / 2]);
    SIMT_SHARED(float, warp_state, [decode_warps][decode_dim_max + 2]);
    SIMT_SHARED(unsigned, arrived, [1]);
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    const std::int64_t split = blockIdx.x, h = blockIdx.y, b = blockIdx.z / p.len_q,
                       i = blockIdx.z % p.len_q;
    const CudaRow row(p, b, h, i);
    load_query<T>(row, frequency, q);
    __syncthreads();
    const std::int64_t each = (p.len_kv + p.splits - 1) / p.splits;
    const std::int64_t end = row.is_query() ? min(row.end_key(), (split + 1) * each) : 0;
    Running r{-INFINITY, 0.0f, {}};
    walk_split<T>(row, frequency, q, split * each, end, warp, lane, r);
    for (int c = 0; c < decode_columns; ++c)
        if (lane + 32 * c < p.dim_v) warp_state[warp][lane + 32 * c] = r.sum[c];
    if (lane == 0) {
        warp_state[warp][decode_dim_max] = r.m;
        warp_state[warp][decode_dim_max + 1] = r.l;
    }
    __syncthreads();

    const std::int64_t row_index = (b * p.heads_q + h) * p.len_q + i, width = p.dim_v + 2;
    float* partial = p.partial + (row_index * p.splits + split) * width;
    for (std::int64_t c = thread; c < p.dim_v; c += 128) {
        float m = -INFINITY, l = 0.0f, sum = 0.0f;
        for (int w = 0; w < decode_warps; ++w)
            merge(m, l, sum, warp_state[w][decode_dim_max], warp_state[w][decode_dim_max + 1],
                  warp_state[w][c]);
        partial[c] = sum;
        if (c == 0) {
            partial[p.dim_v] = m;
            partial[p.dim_v + 1] = l;
        }
    }
    __threadfence();
    __syncthreads();
    if (thread == 0) arrived[0] = atomicAdd(&p.arrivals[row_index], 1u);
    __syncthreads();
    if (arrived[0] != static_cast<unsigned>(p.splits) - 1) return;
    __threadfence();
    const float* all = p.partial + row_index * p.splits * width;
    for (std::int64_t c = thread; c < p.dim_v; c += 128) {
        float m = row.first_max(), l = row.first_sum(), sum = 0.0f;
        for (std::int64_t s = 0; s < p.splits; ++s)
            merge(m, l, sum, all[s * width + p.dim_v], all[s * width + p.dim_v + 1],
                  all[s * width + c]);
        *at<T>(p.o, b, h, i, c) = Number<T>::round(l == 0.0f || !row.is_query() ? 0.0f : sum / l);
        if (c == 0) row.write_lse(m, l);
    }
}

}  // namespace attest::cuda
