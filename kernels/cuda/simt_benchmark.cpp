// The processor time of one head of a CUDA kernel, in milliseconds, the mean over the four kinds of
// schedule. Linked twice: fast, and with every memory access checked.
//
//     simt_benchmark            the table
//     simt_benchmark SECONDS    the mma kernel at T = 128 for as long, for a profiler

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "kernels/cuda/launch.hpp"
#include "kernels/simt/check.hpp"
#include "kernels/simt/half.hpp"
#include "kernels/simt/options.hpp"

namespace {

using attest::cuda::Params;
using LaunchFunction = int (*)(attest::cuda::ElementFormat, const Params&, void*);

constexpr std::int64_t dim = 64;

double milliseconds_since(std::clock_t start) {
    return 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

template <typename T>
struct Head {
    std::vector<T> q, k, v, o;
    Params p;

    Head(std::int64_t length, bool causal)
        : q(static_cast<std::size_t>(length * dim)), k(q), v(q), o(q) {
        for (std::size_t i = 0; i < q.size(); ++i) {
            q[i] = T(static_cast<float>(i * 7 % 31) / 16.0f - 1.0f);
            k[i] = T(static_cast<float>(i * 11 % 37) / 16.0f - 1.0f);
            v[i] = T(static_cast<float>(i * 5 % 29) / 16.0f - 1.0f);
        }
        const auto place = [length](std::vector<T>& x) {
            return attest::cuda::Strided{x.data(), {length * dim, length * dim, dim, 1}};
        };
        p.q = place(q);
        p.k = place(k);
        p.v = place(v);
        p.o = place(o);
        p.len_q = p.len_kv = length;
        p.dim_qk = p.dim_v = dim;
        p.scale_f32 = 0.125f;
        p.causal = causal;
        p.chunks_aligned = true;
    }

    /// Mean over the schedules.
    double time(LaunchFunction launch, attest::cuda::ElementFormat element, int rounds) {
        const auto run = [&](int n) {
            simt::options().schedule = static_cast<simt::Schedule>(n % 4);
            simt::options().seed = static_cast<std::uint64_t>(n);
            if (launch(element, p, nullptr) != 0) std::abort();
        };
        run(0);  // stacks and shadow memory are made once
        const auto start = std::clock();
        for (int n = 0; n < rounds; ++n) run(n);
        return milliseconds_since(start) / rounds;
    }
};

template <typename T>
void row(const char* name, LaunchFunction launch, attest::cuda::ElementFormat element, bool causal,
         int rounds) {
    std::printf("%-30s", name);
    for (const std::int64_t length : {64, 128, 256})
        std::printf("%10.2f", Head<T>(length, causal).time(launch, element, rounds));
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    using attest::cuda::ElementFormat;
    if (argc > 1) {
        const auto start = std::clock();
        while (milliseconds_since(start) < 1000 * std::atof(argv[1]))
            Head<__nv_bfloat16>(128, false)
                .time(attest::cuda::launch_flash_mma, ElementFormat::bf16, 20);
        return 0;
    }
    const int rounds = simt::checker() != nullptr ? 8 : 40;
    std::printf("%s, one head, d = 64, ms%16s%10s%10s\n",
                simt::checker() != nullptr ? "checked" : "fast   ", "T=64", "T=128", "T=256");
    row<float>("flash f32", attest::cuda::launch_flash, ElementFormat::f32, false, rounds);
    row<float>("flash f32 causal", attest::cuda::launch_flash, ElementFormat::f32, true, rounds);
    row<__nv_bfloat16>("flash_mma bf16", attest::cuda::launch_flash_mma, ElementFormat::bf16, false,
                       rounds);
    row<__nv_bfloat16>("flash_mma bf16 causal", attest::cuda::launch_flash_mma, ElementFormat::bf16,
                       true, rounds);
    row<__half>("flash_mma f16", attest::cuda::launch_flash_mma, ElementFormat::f16, false, rounds);
}
