#pragma once
// cuda_naive: the definition, one thread a query row, three passes over the keys, scores computed
// again in each. Accumulates in f32. No shared memory, no barriers: what the other kernels are
// first compared with.

#include "kernels/cuda/row.cuh"

namespace attest::cuda {

template <typename T>
__device__ inline float dot_score(const CudaRow& row, std::int64_t j) {
    const Params& p = row.p;
    if (j < row.first_key() || j >= row.end_key()) return -INFINITY;
    const T* q = at<T>(p.q, row.b, row.h, row.i, 0);
    const T* k = row.key<T>(j);
    float sum = 0.0f;
    for (std::int64_t c = 0; c < p.dim_qk; ++c)
        sum += Number<T>::read(q[c * p.q.stride[3]]) * Number<T>::read(k[c * p.k.stride[3]]);
    return row.score<T>(sum * p.scale_f32, j);
}

template <typename T>
__global__ void naive_kernel(Params p) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= p.len_q) return;
    const CudaRow row(p, blockIdx.z, blockIdx.y, i);
    const std::int64_t first = row.first_key(), end = row.is_query() ? row.end_key() : 0;
    float m = row.first_max();
    for (std::int64_t j = first; j < end; ++j) m = larger(m, dot_score<T>(row, j));
    float l = row.first_sum() * rescale(row.first_max(), m);
    for (std::int64_t j = first; j < end; ++j) l += weight(dot_score<T>(row, j), m);
    constexpr int columns = 32;
    for (std::int64_t c0 = 0; c0 < p.dim_v; c0 += columns) {
        const std::int64_t width = min(p.dim_v - c0, std::int64_t{columns});
        float sum[columns] = {};
        for (std::int64_t j = first; j < end; ++j) {
            const float s = dot_score<T>(row, j);
            if (s == -INFINITY) continue;  // a hidden value may be NaN
            const float w = weight(s, m);
            const float rounded = Number<T>::read(Number<T>::round(w));
            const T* v = row.value<T>(j);
            for (std::int64_t c = 0; c < width; ++c)
                sum[c] += rounded * Number<T>::read(v[(c0 + c) * p.v.stride[3]]);
        }
        for (std::int64_t c = 0; c < width; ++c)
            *at<T>(p.o, row.b, row.h, i, c0 + c) =
                Number<T>::round(l == 0.0f || !row.is_query() ? 0.0f : sum[c] / l);
    }
    row.write_lse(m, l);
}

}  // namespace attest::cuda
