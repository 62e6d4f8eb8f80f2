// Attention the way a first CUDA version is written: one thread a query, host pointers in and out.
// It knows nothing of attest; attention_naive_glue.cpp is what lets attest judge it.
#include <cuda_runtime.h>
#include <math.h>

__global__ void attention_kernel(const float* Q, const float* K, const float* V, float* O,
                                 int heads, int Tq, int Tk, int D, float scale, bool causal) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int head = blockIdx.y;
    if (i >= Tq || head >= heads) return;
    const float* q = Q + ((size_t)head * Tq + i) * D;
    const float* k = K + (size_t)head * Tk * D;
    const float* v = V + (size_t)head * Tk * D;
    float* o = O + ((size_t)head * Tq + i) * D;

    // The last query sees every key.
    const int end = causal ? min(Tk, i + Tk - Tq + 1) : Tk;
    float largest = -INFINITY;
    for (int j = 0; j < end; ++j) {
        float score = 0;
        for (int d = 0; d < D; ++d) score += q[d] * k[(size_t)j * D + d];
        largest = fmaxf(largest, score * scale);
    }
    float sum = 0;
    for (int d = 0; d < D; ++d) o[d] = 0;
    for (int j = 0; j < end; ++j) {
        float score = 0;
        for (int d = 0; d < D; ++d) score += q[d] * k[(size_t)j * D + d];
        const float weight = expf(score * scale - largest);
        sum += weight;
        for (int d = 0; d < D; ++d) o[d] += weight * v[(size_t)j * D + d];
    }
    if (sum > 0)
        for (int d = 0; d < D; ++d) o[d] /= sum;
}

/// All tensors [heads, length, D] on the host.
cudaError_t attention_naive(const float* q, const float* k, const float* v, float* o, int heads,
                            int Tq, int Tk, int D, float scale, bool causal) {
    const size_t q_bytes = sizeof(float) * heads * Tq * D, k_bytes = sizeof(float) * heads * Tk * D;
    float *d_q, *d_k, *d_v, *d_o;
    cudaMalloc(&d_q, q_bytes);
    cudaMalloc(&d_k, k_bytes);
    cudaMalloc(&d_v, k_bytes);
    cudaMalloc(&d_o, q_bytes);
    cudaMemcpy(d_q, q, q_bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_k, k, k_bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(d_v, v, k_bytes, cudaMemcpyHostToDevice);

    const int threads = 128;
    dim3 grid((Tq + threads - 1) / threads, heads);
    attention_kernel<<<grid, threads>>>(d_q, d_k, d_v, d_o, heads, Tq, Tk, D, scale, causal);

    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaMemcpy(o, d_o, q_bytes, cudaMemcpyDeviceToHost);
    cudaFree(d_q);
    cudaFree(d_k);
    cudaFree(d_v);
    cudaFree(d_o);
    return error;
}
