#pragma once
// The gradients of cuda_flash: P is recomputed from the stored LSE, D taken from the stored output.
//
//   P = exp(S - LSE), dS = P (dO.V - D) slope, dQ = scale dS K, dK = scale dS'Q, dV = P'dO
//
// D is dO.O, less the LSE's gradient where there is one.
//
// Tiles of 16 queries and 32 keys, four warps of four rows, a lane a key while P and dS are made.
// One kernel stays with its queries and sums dQ; the other stays with its keys, goes through the
// rows of every head of the group and sums dK and dV in registers: no sum has two writers, and the
// bits repeat. With `atomic` the second adds its share of dQ to an f32 sum in the workspace, which
// is cleared before and rounded after: one pass over the scores, in no order. Accumulates in f32
// and rounds neither P nor dS.

#include "kernels/cuda/care.hpp"
#include "kernels/cuda/row.cuh"

namespace attest::cuda {

inline constexpr int back_rows = 16, back_keys = 32;

/// The tiles in shared memory, each row of DIM channels; keys and values one further apart, so that
/// lanes meet no bank twice.
template <int DIM>
struct BackTiles {
    float *q, *d_o, *k, *v;  // [back_rows][DIM] twice, [back_keys][DIM + 1] twice
    float *w, *ds;           // P and dS, [back_rows][back_keys]; a hidden pair's weight is -0

    template <typename Shared>
    __device__ explicit BackTiles(Shared& shared)
        : q(shared.template take<float>(back_rows * DIM, "q")),
          d_o(shared.template take<float>(back_rows * DIM, "d_o")),
          k(shared.template take<float>(back_keys * (DIM + 1), "k")),
          v(shared.template take<float>(back_keys * (DIM + 1), "v")),
          w(shared.template take<float>(back_rows * back_keys, "w")),
          ds(shared.template take<float>(back_rows * back_keys, "ds")) {}

    static constexpr std::size_t bytes() {
        return sizeof(float) *
               (2 * back_rows * DIM + 2 * back_keys * (DIM + 1) + 2 * back_rows * back_keys + 16);
    }

    /// What is past a length or a dimension is 0, and read from nowhere.
    template <typename T>
    __device__ void load_rows(const CudaRow& first) const {
        const Params& p = first.p;
        for (int x = static_cast<int>(threadIdx.x); x < back_rows * DIM; x += 128) {
            const std::int64_t i = first.i + x / DIM, c = x % DIM;
            const bool is = i < p.len_q && i < first.queries;
            q[x] = is && c < p.dim_qk ? Number<T>::read(*at<T>(p.q, first.b, first.h, i, c)) : 0;
            d_o[x] = is && c < p.dim_v ? Number<T>::read(*at<T>(p.d_o, first.b, first.h, i, c)) : 0;
        }
    }
    template <typename T>
    __device__ void load_keys(const CudaRow& row, std::int64_t k0) const {
        const Params& p = row.p;
        for (int x = static_cast<int>(threadIdx.x); x < back_keys * DIM; x += 128) {
            const std::int64_t j = k0 + x / DIM, c = x % DIM;
            const int to = x / DIM * (DIM + 1) + x % DIM;
            const bool is = j < row.keys;
            k[to] = is && c < p.dim_qk ? Number<T>::read(row.key<T>(j)[c * p.k.stride[3]]) : 0;
            v[to] = is && c < p.dim_v ? Number<T>::read(row.value<T>(j)[c * p.v.stride[3]]) : 0;
        }
    }

    /// P and dS of the warp's four rows; dS with the soft cap's slope, or that behind the cap.
    template <typename T, bool sloped = true>
    __device__ void weigh(const CudaRow& first, std::int64_t k0, const float* delta) const {
        const Params& p = first.p;
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (int r = 4 * warp; r < 4 * warp + 4; ++r) {
            const CudaRow row(p, first.b, first.h, first.i + r);
            const bool is = row.is_query() && row.i < p.len_q;
            float product = 0, dp = 0;
            for (int c = 0; c < DIM; ++c) {
                product += q[r * DIM + c] * k[lane * (DIM + 1) + c];
                dp += d_o[r * DIM + c] * v[lane * (DIM + 1) + c];
            }
            product *= p.scale_f32;
            const float s = is ? row.score<T>(product, k0 + lane) : -INFINITY;
            const float lse = is ? *at<float>(p.lse, row.b, row.h, row.i, 0) : 0;
            const float seen = weight(s, lse);
            const float t = p.softcap_f32 > 0 ? tanhf(product / p.softcap_f32) : 0;
            w[r * back_keys + lane] = seen;
            ds[r * back_keys + lane] =
                s == -INFINITY ? 0 : seen * (dp - delta[r - 4 * warp]) * (sloped ? 1 - t * t : 1);
        }
    }
};

/// D of the warp's four rows, the same in every lane. Of a row that sees no key it may be anything,
/// as dLSE is.
template <typename T, int DIM>
__device__ inline void deltas(const BackTiles<DIM>& tiles, const CudaRow& first, float* delta) {
    const Params& p = first.p;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    for (int r = 0; r < 4; ++r) {
        const std::int64_t i = first.i + 4 * warp + r;
        float sum = 0;
        for (std::int64_t c = lane; c < p.dim_v && i < p.len_q && i < first.queries; c += 32)
            sum += tiles.d_o[(4 * warp + r) * DIM + c] *
                   Number<T>::read(*at<T>(p.o, first.b, first.h, i, c));
        for (int step = 16; step != 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        const bool given = p.d_lse.data != nullptr && i < p.len_q && i < first.queries;
        delta[r] = given ? sum - *at<float>(p.d_lse, first.b, first.h, i, 0) : sum;
    }
}

/// The keys that some row of the tile may see.
__device__ inline void reach(const CudaRow& tile, std::int64_t& first, std::int64_t& end) {
    first = tile.p.len_kv;
    end = 0;
    for (int r = 0; r < back_rows; ++r) {
        const CudaRow row(tile.p, tile.b, tile.h, tile.i + r);
        if (!row.is_query() || row.i >= tile.p.len_q) continue;
        first = min(first, row.first_key());
        end = max(end, row.end_key());
    }
}

template <typename T, int DIM>
__global__ void __launch_bounds__(128) flash_d_query_kernel(Params p) {
    constexpr int columns = (DIM + 31) / 32;
    SIMT_DYNAMIC_SHARED(shared);
    const BackTiles<DIM> tiles(shared);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t q0 = static_cast<std::int64_t>(blockIdx.x) * back_rows;
    const CudaRow tile(p, blockIdx.z, blockIdx.y, q0);
    tiles.template load_rows<T>(tile);
    __syncthreads();
    float delta[4], sum[4][columns] = {};
    deltas<T, DIM>(tiles, tile, delta);
    std::int64_t first, end;
    reach(tile, first, end);
    for (std::int64_t k0 = first / back_keys * back_keys; k0 < end; k0 += back_keys) {
        __syncthreads();
        tiles.template load_keys<T>(tile, k0);
        __syncthreads();
        tiles.template weigh<T>(tile, k0, delta);
        __syncwarp();
        for (int r = 0; r < 4; ++r)
            for (int j = 0; j < back_keys; ++j) {
                const int pair = (4 * warp + r) * back_keys + j;
                if (hidden(tiles.w[pair])) continue;  // a hidden key may be NaN
                for (int c = 0; c < columns; ++c)
                    if (lane + 32 * c < DIM)
                        sum[r][c] += tiles.ds[pair] * tiles.k[j * (DIM + 1) + lane + 32 * c];
            }
    }
    for (int r = 0; r < 4; ++r)
        for (int c = 0; c < columns; ++c)
            if (tile.i + 4 * warp + r < p.len_q && lane + 32 * c < p.dim_qk)
                *at<T>(p.d_q, tile.b, tile.h, tile.i + 4 * warp + r, lane + 32 * c) =
                    Number<T>::round(sum[r][c] * p.scale_f32);
}

/// Adds the tile's share of dQ, the warp's four rows of it.
template <int DIM>
__device__ inline void add_d_query(const BackTiles<DIM>& tiles, const CudaRow& tile) {
    const Params& p = tile.p;
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    for (int r = 4 * warp; r < 4 * warp + 4 && tile.i + r < p.len_q; ++r) {
        if (p.d_q.data == nullptr) return;
        const std::int64_t row = (tile.b * p.heads_q + tile.h) * p.len_q + tile.i + r;
        for (std::int64_t c = lane; c < p.dim_qk; c += 32) {
            float sum = 0;
            for (int j = 0; j < back_keys; ++j)
                if (!hidden(tiles.w[r * back_keys + j]))
                    sum += tiles.ds[r * back_keys + j] * tiles.k[j * (DIM + 1) + c];
            atomicAdd(p.d_q_sum + row * p.dim_qk + c, sum);
        }
    }
}

/// A lane sums every fourth channel of its key.
template <typename T, int DIM, bool atomic, unsigned care_code = 0>
__global__ void __launch_bounds__(128) flash_d_key_kernel(Params p) {
    constexpr Care care = decoded(care_code);
    constexpr int columns = DIM / 4;
    SIMT_DYNAMIC_SHARED(shared);
    const BackTiles<DIM> tiles(shared);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t b = blockIdx.z, group = p.heads_q / p.heads_kv;
    const std::int64_t kv_head = care.group_in_one_block ? blockIdx.y : blockIdx.y / group;
    const std::int64_t k0 = static_cast<std::int64_t>(blockIdx.x) * back_keys;
    float d_k[columns] = {}, d_v[columns] = {};
    tiles.template load_keys<T>(CudaRow(p, b, kv_head * group, 0), k0);
    const std::int64_t first_head = care.group_in_one_block ? kv_head * group : blockIdx.y;
    const std::int64_t last_head = care.group_in_one_block ? first_head + group : first_head + 1;
    for (std::int64_t h = first_head; h < last_head; ++h)
        for (std::int64_t i = 0; i < p.len_q; i += back_rows) {
            const CudaRow tile(p, b, h, i);
            std::int64_t first, end;
            reach(tile, first, end);
            if (end <= k0 || first >= k0 + back_keys) continue;
            if constexpr (care.barrier_before_load) __syncthreads();
            tiles.template load_rows<T>(tile);
            if constexpr (care.barrier_after_load) __syncthreads();
            float delta[4];
            deltas<T, DIM>(tiles, tile, delta);
            tiles.template weigh<T>(tile, k0, delta);
            if constexpr (care.barrier_after_weights) __syncthreads();
            for (int r = 0; r < back_rows; ++r) {
                const int pair = r * back_keys + lane;
                if (hidden(tiles.w[pair])) continue;  // what does not see the key may be NaN
                for (int c = 0; c < columns; ++c) {
                    d_k[c] += tiles.ds[pair] * tiles.q[r * DIM + warp + 4 * c];
                    d_v[c] += tiles.w[pair] * tiles.d_o[r * DIM + warp + 4 * c];
                }
            }
            if constexpr (atomic) add_d_query(tiles, tile);
        }
    const std::int64_t j = k0 + lane;
    for (int c = 0; c < columns && j < p.len_kv; ++c) {
        const int channel = warp + 4 * c;
        if (p.d_k.data != nullptr && channel < p.dim_qk)
            *at<T>(p.d_k, b, kv_head, j, channel) = Number<T>::round(d_k[c] * p.scale_f32);
        if (p.d_v.data != nullptr && channel < p.dim_v)
            *at<T>(p.d_v, b, kv_head, j, channel) = Number<T>::round(d_v[c]);
    }
}

/// dQ of the sums that atomics made, a thread an element.
template <typename T>
__global__ void round_d_query_kernel(Params p) {
    const std::int64_t x = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (x >= p.batch * p.heads_q * p.len_q * p.dim_qk) return;
    const std::int64_t c = x % p.dim_qk, row = x / p.dim_qk, i = row % p.len_q;
    const std::int64_t h = row / p.len_q % p.heads_q, b = row / p.len_q / p.heads_q;
    *at<T>(p.d_q, b, h, i, c) = Number<T>::round(p.d_q_sum[x] * p.scale_f32);
}

/// dK and dV where there are keys.
template <typename T, int DIM, bool atomic, unsigned care = 0>
int launch_d_key(const Params& p, cudaStream_t stream) {
    if (p.batch == 0 || p.heads_q == 0 || p.len_kv == 0) return cudaSuccess;
    const std::int64_t heads = decoded(care).group_in_one_block ? p.heads_kv : p.heads_q;
    const dim3 grid(static_cast<unsigned>((p.len_kv + back_keys - 1) / back_keys),
                    static_cast<unsigned>(heads), static_cast<unsigned>(p.batch));
    return simt::launch(flash_d_key_kernel<T, DIM, atomic, care>, grid, dim3(128),
                        BackTiles<DIM>::bytes(), stream, p);
}

/// All three gradients by one pass over the scores.
template <typename T, int DIM, unsigned care = 0>
int launch_d_key_atomic(const Params& p, cudaStream_t stream) {
    const std::int64_t size = p.batch * p.heads_q * p.len_q * p.dim_qk;
    const bool d_q = p.d_q.data != nullptr && size != 0;
    int code = cudaSuccess;
    if (d_q && decoded(care).sums_cleared)
        code =
            cudaMemsetAsync(p.d_q_sum, 0, sizeof(float) * static_cast<std::size_t>(size), stream);
    if (code == cudaSuccess) code = launch_d_key<T, DIM, true, care>(p, stream);
    if (code != cudaSuccess || !d_q) return code;
    return simt::launch(round_d_query_kernel<T>, dim3(static_cast<unsigned>((size + 127) / 128)),
                        dim3(128), 0, stream, p);
}

}  // namespace attest::cuda
