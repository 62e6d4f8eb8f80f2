// Attention the way a second CUDA version is written: shared memory for K and V, an online softmax.
// It knows nothing of attest; attention_tiled_glue.cpp is what lets attest judge it.
#include <cuda_runtime.h>
#include <math.h>

#define TILE 32

/// A block takes 32 queries, a thread one of them. Tensors are [heads, length, D], D at most DIM.
template <int DIM>
__global__ void __launch_bounds__(TILE * 4)
attention_tiled_kernel(const float* __restrict__ Q, const float* __restrict__ K,
                       const float* __restrict__ V, float* __restrict__ O, int Tq, int Tk, int D,
                       float scale, bool causal) {
    __shared__ float k_tile[TILE][DIM + 1], v_tile[TILE][DIM + 1];
    extern __shared__ float scores[];  // [blockDim.x][TILE]
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t head = blockIdx.y;
    const int end = causal ? min(Tk, i + Tk - Tq + 1) : Tk;

    float q[DIM], o[DIM];
    float largest = -INFINITY, sum = 0;
    for (int d = 0; d < DIM; ++d) {
        q[d] = i < Tq && d < D ? Q[(head * Tq + i) * D + d] : 0;
        o[d] = 0;
    }
    for (int start = 0; start < Tk; start += TILE) {
        for (int x = threadIdx.x; x < TILE * D; x += blockDim.x) {
            const int j = x / D, d = x % D;
            const bool inside = start + j < Tk;
            k_tile[j][d] = inside ? K[(head * Tk + start + j) * D + d] : 0;
            v_tile[j][d] = inside ? V[(head * Tk + start + j) * D + d] : 0;
        }
        __syncthreads();  // the tile is complete
        const int count = min(TILE, end - start);
        float before = largest;
        for (int j = 0; j < count; ++j) {
            float score = 0;
            for (int d = 0; d < D; ++d) score += q[d] * k_tile[j][d];
            scores[threadIdx.x * TILE + j] = score * scale;
            largest = fmaxf(largest, score * scale);
        }
        const float old = before == -INFINITY ? 0 : expf(before - largest);
        sum *= old;
        for (int d = 0; d < D; ++d) o[d] *= old;
        for (int j = 0; j < count; ++j) {
            const float weight = expf(scores[threadIdx.x * TILE + j] - largest);
            sum += weight;
            for (int d = 0; d < D; ++d) o[d] += weight * v_tile[j][d];
        }
        __syncthreads();  // the tile may be overwritten
    }
    if (i >= Tq) return;
    for (int d = 0; d < D; ++d) O[(head * Tq + i) * D + d] = sum > 0 ? o[d] / sum : 0;
}

/// Device pointers.
cudaError_t attention_tiled(const float* q, const float* k, const float* v, float* o, int heads,
                            int Tq, int Tk, int D, float scale, bool causal) {
    const int threads = 32;
    dim3 grid((Tq + threads - 1) / threads, heads);
    const size_t bytes = sizeof(float) * threads * TILE;
    if (D <= 32)
        attention_tiled_kernel<32><<<grid, threads, bytes>>>(q, k, v, o, Tq, Tk, D, scale, causal);
    else
        attention_tiled_kernel<64>
            <<<grid, threads, bytes>>>(q, k, v, o, Tq, Tk, D, scale, causal);
    return cudaGetLastError();
}
