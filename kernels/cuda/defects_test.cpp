// The planted bugs of the GPU kernels: all caught, by values or by diagnostics, and the kernel
// itself never accused.
//
// A result is wrong where its bits differ from the correct kernel's: that one is invariant under
// every schedule, to the bit, so no tolerance is needed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/launch.hpp"
#include "kernels/simt/check.hpp"
#include "kernels/simt/half.hpp"
#include "kernels/simt/options.hpp"

namespace {

using attest_cuda::Defect;
using attest_cuda::Params;

/// Short and long key lengths: an undefined tail needs fewer keys than a tile, a reused tile at
/// least three tiles.
struct ShapeCase {
    std::int64_t len_q, len_kv;
    bool causal;
};
constexpr ShapeCase shapes[] = {{17, 9, false}, {70, 70, true}, {33, 128, false}, {20, 101, true}};
constexpr std::int64_t dim = 64, heads = 2;

struct Outcome {
    std::vector<unsigned char> output;
    std::set<std::string> kinds;
    std::string text;
};

/// Small deterministic numbers, exact in bf16.
float value(std::uint64_t index) {
    return static_cast<float>(static_cast<int>(index * 2654435761u >> 16 & 31u) - 15) / 8.0f;
}

template <typename T>
std::vector<T> tensor(std::int64_t size, std::uint64_t salt) {
    std::vector<T> x(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(value(i + salt));
    return x;
}

attest_cuda::Strided strided(void* data, std::int64_t length, std::int64_t width) {
    return {data, {heads * length * width, length * width, width, 1}};
}

template <typename T>
Outcome run(int (*launch)(Defect, const Params&, void*), Defect defect, const ShapeCase& shape,
            simt::Schedule schedule) {
    auto q = tensor<T>(heads * shape.len_q * dim, 1), k = tensor<T>(heads * shape.len_kv * dim, 77),
         v = tensor<T>(heads * shape.len_kv * dim, 991);
    std::vector<T> o(static_cast<std::size_t>(heads * shape.len_q * dim));
    std::vector<float> lse(static_cast<std::size_t>(heads * shape.len_q));
    Params p;
    p.q = strided(q.data(), shape.len_q, dim);
    p.k = strided(k.data(), shape.len_kv, dim);
    p.v = strided(v.data(), shape.len_kv, dim);
    p.o = strided(o.data(), shape.len_q, dim);
    p.lse = strided(lse.data(), shape.len_q, 1);
    p.heads_q = p.heads_kv = heads;
    p.len_q = shape.len_q;
    p.len_kv = shape.len_kv;
    p.dim_qk = p.dim_v = dim;
    p.scale_f32 = 0.125f;
    p.causal = shape.causal;
    p.chunks_aligned = reinterpret_cast<std::uintptr_t>(q.data()) % 16 == 0 &&
                       reinterpret_cast<std::uintptr_t>(k.data()) % 16 == 0 &&
                       reinterpret_cast<std::uintptr_t>(v.data()) % 16 == 0;
    simt::options().schedule = schedule;
    simt::options().seed = 3;
    simt::clear_report();
    launch(defect, p, nullptr);
    Outcome outcome;
    outcome.output.resize(o.size() * sizeof(T) + lse.size() * sizeof(float));
    std::memcpy(outcome.output.data(), o.data(), o.size() * sizeof(T));
    std::memcpy(outcome.output.data() + o.size() * sizeof(T), lse.data(),
                lse.size() * sizeof(float));
    for (const simt::Diagnostic& d : simt::last_report().diagnostics)
        if (!d.warning) {
            outcome.kinds.insert(d.kind);
            outcome.text += d.kind + ": " + d.text + "\n";
        }
    return outcome;
}

constexpr simt::Schedule schedules[] = {simt::Schedule::round_robin, simt::Schedule::reverse,
                                        simt::Schedule::random, simt::Schedule::warp_greedy};

struct Count {
    int wrong = 0, diagnosed = 0, runs = 0;
    std::string example;
};

template <typename T>
Count count(int (*launch)(Defect, const Params&, void*), Defect defect) {
    Count total;
    for (const ShapeCase& shape : shapes) {
        const Outcome right = run<T>(launch, Defect::none, shape, simt::Schedule::round_robin);
        for (const simt::Schedule schedule : schedules) {
            const Outcome got = run<T>(launch, defect, shape, schedule);
            total.wrong += got.output != right.output ? 1 : 0;
            total.diagnosed += got.kinds.empty() ? 0 : 1;
            if (total.example.empty()) total.example = got.text;
            ++total.runs;
        }
    }
    return total;
}

/// A defect that only one of the two kernels can have.
bool applies(Defect defect, bool mma) {
    switch (defect) {
        case Defect::tail_not_cleared:  // flash asks the ballot, not the tile, which keys are there
        case Defect::copy_never_awaited:
        case Defect::value_not_transposed:
        case Defect::lane_forgotten:
        case Defect::key_tail_not_cleared:
            return mma;
        case Defect::no_syncwarp_after_weights:
            return !mma;
        default:
            return true;
    }
}

template <typename T>
void judge_all(int (*launch)(Defect, const Params&, void*), bool mma) {
    const Count control = count<T>(launch, Defect::none);
    EXPECT_EQ(control.wrong, 0) << "the result depends on the schedule";
    EXPECT_EQ(control.diagnosed, 0) << control.example;
    for (int d = 1; d < attest_cuda::defect_count; ++d) {
        const auto defect = static_cast<Defect>(d);
        if (!applies(defect, mma)) continue;
        const Count seen = count<T>(launch, defect);
        ::testing::Test::RecordProperty("defect_" + std::to_string(d),
                                        std::to_string(seen.wrong) + " wrong, " +
                                            std::to_string(seen.diagnosed) + " diagnosed of " +
                                            std::to_string(seen.runs));
        const bool needs_checker =
            mma && (defect == Defect::tile_reused_early || defect == Defect::tail_not_cleared ||
                    defect == Defect::key_tail_not_cleared);
        if (needs_checker && simt::checker() == nullptr) continue;
        EXPECT_GT(seen.wrong + seen.diagnosed, 0) << "defect " << d << " goes unseen";
    }
}

TEST(cuda_defects, flash) {
    judge_all<float>(attest_cuda::launch_flash_with, false);
}
TEST(cuda_defects, flash_mma) {
    judge_all<__nv_bfloat16>(attest_cuda::launch_flash_mma_with, true);
}

TEST(cuda_defects, some_show_only_in_diagnostics) {
    if (simt::checker() == nullptr) GTEST_SKIP() << "not run: this build has no memory checker";
    for (const Defect defect : {Defect::copy_one_row_too_far, Defect::key_tail_not_cleared}) {
        const Count seen = count<__nv_bfloat16>(attest_cuda::launch_flash_mma_with, defect);
        EXPECT_EQ(seen.wrong, 0) << static_cast<int>(defect);
        EXPECT_GT(seen.diagnosed, 0) << static_cast<int>(defect);
    }
}

}  // namespace
