// How long cuda_flash_mma and cuda_decode take on a GPU: bf16, 2,048 / D heads; prefill of 16,384
// tokens in all, decode of one. Prints a table, one line a shape; TFLOP/s are of the two products.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "kernels/cuda/launch.hpp"
#include "kernels/simt/simt.hpp"

namespace {

using attest::cuda::ElementFormat;
using attest::cuda::Params;

void require(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "gpu_benchmark: %s\n", cudaGetErrorString(error));
    std::exit(3);
}

void* room(std::int64_t bytes) {
    void* p = nullptr;
    require(cudaMalloc(&p, static_cast<std::size_t>(bytes)));
    return p;
}

/// [-1, 1) in bf16: a chip runs faster on numbers that are all alike.
void* numbers(std::int64_t count) {
    static const std::vector<__nv_bfloat16> drawn = [] {
        std::minstd_rand random;
        std::uniform_real_distribution<float> uniform(-1, 1);
        std::vector<__nv_bfloat16> all(1 << 22);
        for (__nv_bfloat16& x : all) x = __float2bfloat16_rn(uniform(random));
        return all;
    }();
    auto* p = static_cast<__nv_bfloat16*>(room(2 * count));
    const auto most = static_cast<std::int64_t>(drawn.size());
    for (std::int64_t at = 0; at < count; at += most)
        require(cudaMemcpy(p + at, drawn.data(),
                           static_cast<std::size_t>(2 * std::min(most, count - at)),
                           cudaMemcpyHostToDevice));
    return p;
}

struct BenchmarkShape {
    std::int64_t batch, heads, len_q, len_kv, dim;
    bool causal;
};

Params problem(const BenchmarkShape& s) {
    Params p;
    const auto tensor = [&](std::int64_t length) {
        return attest::cuda::Strided{numbers(s.batch * s.heads * length * s.dim),
                                     {s.heads * length * s.dim, length * s.dim, s.dim, 1}};
    };
    p.q = tensor(s.len_q);
    p.k = tensor(s.len_kv);
    p.v = tensor(s.len_kv);
    p.o = tensor(s.len_q);
    p.batch = s.batch;
    p.heads_q = p.heads_kv = s.heads;
    p.len_q = s.len_q;
    p.len_kv = s.len_kv;
    p.dim_qk = p.dim_v = s.dim;
    p.scale_f32 = 0.1f;
    p.causal = s.causal;
    p.chunks_aligned = true;
    return p;
}

void measure(const char* name, int (*launch)(ElementFormat, const Params&, void*),
             const BenchmarkShape& s) {
    Params p = problem(s);
    const std::int64_t rows = s.batch * s.heads * s.len_q;
    p.splits = 16;
    p.arrivals = static_cast<std::uint32_t*>(room(rows * 4));
    p.partial = static_cast<float*>(room(rows * p.splits * (s.dim + 2) * 4));
    constexpr int warm_up = 2, rounds = 5;
    cudaEvent_t start, end;
    require(cudaEventCreate(&start));
    require(cudaEventCreate(&end));
    for (int n = 0; n < warm_up + rounds; ++n) {
        if (n == warm_up) require(cudaEventRecord(start));
        require(static_cast<cudaError_t>(launch(ElementFormat::bf16, p, nullptr)));
    }
    require(cudaEventRecord(end));
    require(cudaEventSynchronize(end));
    float ms = 0;
    require(cudaEventElapsedTime(&ms, start, end));
    ms /= rounds;
    const double flops = 4.0 * static_cast<double>(rows) * static_cast<double>(s.len_kv * s.dim) /
                         (s.causal ? 2 : 1);
    std::printf("%s", name);
    for (const std::int64_t size : {s.batch, s.heads, s.len_q, s.len_kv, s.dim})
        std::printf("\t%lld", static_cast<long long>(size));
    std::printf("\t%s\t%.4f\t%.1f\n", s.causal ? "causal" : "full", ms, flops / ms * 1e-9);
    std::fflush(stdout);
    for (void* used : {p.q.data, p.k.data, p.v.data, p.o.data, static_cast<void*>(p.arrivals),
                       static_cast<void*>(p.partial)})
        require(cudaFree(used));
}

}  // namespace

/// Exit 3 where CUDA refuses.
int main() {
    constexpr std::int64_t tokens = 16384;
    std::puts("kernel\tbatch\theads\tlen_q\tlen_kv\tdim\tmask\tms\ttflops");
    for (const std::int64_t dim : {64, 128})
        for (std::int64_t length = 512; length <= tokens; length *= 2)
            for (const bool causal : {false, true})
                measure("cuda_flash_mma", attest::cuda::launch_flash_mma,
                        {tokens / length, 2048 / dim, length, length, dim, causal});
    for (const std::int64_t dim : {64, 128})
        for (const std::int64_t batch : {1, 8, 32})
            for (std::int64_t length = 1024; length <= tokens; length *= 4)
                measure("cuda_decode", attest::cuda::launch_decode,
                        {batch, 2048 / dim, 1, length, dim, false});
    return 0;
}
