#pragma once
// The gradients of what is added to the scores or to their sum: an additive mask, ALiBi's slopes,
// sinks.
//
//   d_mask = sum dS, d_slope = -sum |i - j| dS, d_sink = -sum exp(sink - LSE) D
//
// dS is that behind the soft cap. One block owns what it sums: a tile of 16 queries and 32 keys of
// the mask, and all that is shared; slopes are a mask that everything but the head shares. It goes
// through the sequences, heads, queries and keys that share it, every thread with its own pairs in
// registers, and the pairs are added up at the end: no sum has two writers, and the bits repeat.
// Accumulates in f32.

#include "kernels/cuda/flash_backward.cuh"

namespace attest::cuda {

enum class Added { mask, slopes };

/// The axes of what a sum is of; an extent of 1 is shared, and summed over.
template <Added added>
__device__ __host__ inline const Extents extents_of(const Params& p) {
    return added == Added::mask ? p.mask_extents : Extents{{1, p.heads_q, 1, 1}};
}

/// Where a block starts on an axis and where it ends: at all of what is shared.
struct Span {
    std::int64_t first, end;
    __device__ Span(std::int64_t extent, std::int64_t all, std::int64_t own, std::int64_t step)
        : first(extent == 1 ? 0 : own * step), end(extent == 1 ? all : min(all, first + step)) {}
};

template <typename T, int DIM, Added added>
__global__ void __launch_bounds__(128) flash_d_bias_kernel(Params p) {
    SIMT_DYNAMIC_SHARED(shared);
    const BackTiles<DIM> tiles(shared);
    const Extents of = extents_of<added>(p);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t across = (of.axis[3] + back_keys - 1) / back_keys;
    const Span batch(of.axis[0], p.batch, blockIdx.z, 1),
        heads(of.axis[1], p.heads_q, blockIdx.y, 1);
    const Span rows(of.axis[2], p.len_q, blockIdx.x / across, back_rows);
    const Span keys(of.axis[3], p.len_kv, blockIdx.x % across, back_keys);
    float sum[4] = {};
    for (std::int64_t b = batch.first; b < batch.end; ++b)
        for (std::int64_t h = heads.first; h < heads.end; ++h)
            for (std::int64_t i = rows.first; i < rows.end; i += back_rows) {
                const CudaRow tile(p, b, h, i);
                std::int64_t first, end;
                reach(tile, first, end);
                if (end <= keys.first || first >= keys.end) continue;
                __syncthreads();
                tiles.template load_rows<T>(tile);
                __syncthreads();
                float delta[4];
                deltas<T, DIM>(tiles, tile, delta);
                for (std::int64_t k0 = keys.first; k0 < keys.end; k0 += back_keys) {
                    if (end <= k0 || first >= k0 + back_keys) continue;
                    __syncthreads();
                    tiles.template load_keys<T>(tile, k0);
                    __syncthreads();
                    tiles.template weigh<T, false>(tile, k0, delta);
                    for (int r = 0; r < 4; ++r) {  // what this thread wrote
                        const float ds = tiles.ds[(4 * warp + r) * back_keys + lane];
                        const std::int64_t apart = i + 4 * warp + r + tile.offset - k0 - lane;
                        const auto distance = static_cast<float>(apart < 0 ? -apart : apart);
                        sum[r] += added == Added::mask ? ds : -ds * distance;
                    }
                }
            }
    for (int r = 0; r < 4; ++r) tiles.ds[(4 * warp + r) * back_keys + lane] = sum[r];
    __syncthreads();
    // A thread an element: the pairs of the tile that share it.
    const int own_rows = of.axis[2] == 1 ? 1 : back_rows,
              own_keys = of.axis[3] == 1 ? 1 : back_keys;
    for (int x = static_cast<int>(threadIdx.x); x < own_rows * own_keys; x += 128) {
        const int row = x / own_keys, key = x % own_keys;
        float total = 0;
        for (int r = row; r < back_rows; r += own_rows)
            for (int j = key; j < back_keys; j += own_keys) total += tiles.ds[r * back_keys + j];
        if (rows.first + row >= of.axis[2] || keys.first + key >= of.axis[3]) continue;
        if (added == Added::slopes)
            *at<float>(p.d_slopes, heads.first, 0, 0, 0) = total;
        else
            *at<T>(p.d_mask, batch.first, heads.first, rows.first + row, keys.first + key) =
                Number<T>::round(total);
    }
}

/// A block a head, a thread every 128th row; then pairs of threads, of halves.
template <typename T>
__global__ void __launch_bounds__(128) flash_d_sink_kernel(Params p) {
    SIMT_DYNAMIC_SHARED(shared);
    float* const sums = shared.template take<float>(128, "sums");
    const std::int64_t h = blockIdx.x;
    float sum = 0;
    for (std::int64_t at_row = threadIdx.x; at_row < p.batch * p.len_q; at_row += 128) {
        const CudaRow row(p, at_row / p.len_q, h, at_row % p.len_q);
        if (!row.is_query()) continue;
        float delta = 0;
        for (std::int64_t c = 0; c < p.dim_v; ++c)
            delta += Number<T>::read(*at<T>(p.d_o, row.b, h, row.i, c)) *
                     Number<T>::read(*at<T>(p.o, row.b, h, row.i, c));
        if (p.d_lse.data != nullptr) delta -= *at<float>(p.d_lse, row.b, h, row.i, 0);
        sum -= expf(p.sinks[h] - *at<float>(p.lse, row.b, h, row.i, 0)) * delta;
    }
    sums[threadIdx.x] = sum;
    for (int half = 64; half != 0; half /= 2) {
        __syncthreads();
        if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *at<float>(p.d_sinks, h, 0, 0, 0) = sums[0];
}

template <typename T, int DIM, Added added>
int launch_d_bias(const Params& p, cudaStream_t stream) {
    const Extents of = extents_of<added>(p);
    for (const std::int64_t extent : of.axis)
        if (extent == 0) return cudaSuccess;
    const std::int64_t down = (of.axis[2] + back_rows - 1) / back_rows;
    const std::int64_t across = (of.axis[3] + back_keys - 1) / back_keys;
    const dim3 grid(static_cast<unsigned>(down * across), static_cast<unsigned>(of.axis[1]),
                    static_cast<unsigned>(of.axis[0]));
    return simt::launch(flash_d_bias_kernel<T, DIM, added>, grid, dim3(128),
                        BackTiles<DIM>::bytes(), stream, p);
}

/// Those that are wanted.
template <typename T, int DIM>
int launch_bias_backward(const Params& p, cudaStream_t stream) {
    int code = cudaSuccess;
    if (p.d_mask.data != nullptr) code = launch_d_bias<T, DIM, Added::mask>(p, stream);
    if (code == cudaSuccess && p.d_slopes.data != nullptr)
        code = launch_d_bias<T, DIM, Added::slopes>(p, stream);
    if (code == cudaSuccess && p.d_sinks.data != nullptr && p.heads_q != 0)
        code = simt::launch(flash_d_sink_kernel<T>, dim3(static_cast<unsigned>(p.heads_q)),
                            dim3(128), sizeof(float) * 128 + 16, stream, p);
    return code;
}

}  // namespace attest::cuda
