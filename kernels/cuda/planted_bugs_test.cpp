// The planted bugs of the GPU kernels: all caught, by values or by diagnostics, and the kernel
// itself never accused.
//
// A result is wrong where its bits differ from the correct kernel's: that one is invariant under
// every schedule, to the bit, so no tolerance is needed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/planted_bugs.hpp"
#include "kernels/simt/check.hpp"
#include "kernels/simt/half.hpp"
#include "kernels/simt/options.hpp"

namespace {

using attest::cuda::ElementFormat;
using attest::cuda::Params;
using attest::cuda::PlantedGpuBug;

/// Short and long key lengths: an undefined tail needs fewer keys than a tile, a reused tile at
/// least three tiles.
struct ShapeCase {
    std::int64_t len_q, len_kv;
    bool causal;
};
constexpr ShapeCase shapes[] = {{17, 9, false}, {70, 70, true}, {33, 128, false}, {20, 101, true}};
constexpr std::int64_t dim = 64, heads = 2;

struct LaunchOutcome {
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

attest::cuda::Strided strided(void* data, std::int64_t length, std::int64_t width) {
    return {data, {heads * length * width, length * width, width, 1}};
}

using LaunchFunction = std::function<int(const Params&)>;

template <typename T>
LaunchOutcome run(const LaunchFunction& launch, const ShapeCase& shape, simt::Schedule schedule) {
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
    launch(p);
    LaunchOutcome outcome;
    const auto keep = [&outcome](const auto& x) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(x.data());
        outcome.output.insert(outcome.output.end(), bytes, bytes + x.size() * sizeof x[0]);
    };
    keep(o);
    keep(lse);
    for (const simt::Diagnostic& d : simt::last_report().diagnostics)
        if (!d.warning) {
            outcome.kinds.insert(d.kind);
            outcome.text += d.kind + ": " + d.text + "\n";
        }
    return outcome;
}

constexpr simt::Schedule schedules[] = {simt::Schedule::round_robin, simt::Schedule::reverse,
                                        simt::Schedule::random, simt::Schedule::warp_greedy};

struct ScheduleCount {
    int wrong = 0, diagnosed = 0, runs = 0;
    std::string example;
};

template <typename T>
ScheduleCount count(const LaunchFunction& launch, const LaunchFunction& correct) {
    ScheduleCount total;
    for (const ShapeCase& shape : shapes) {
        const LaunchOutcome right = run<T>(correct, shape, simt::Schedule::round_robin);
        for (const simt::Schedule schedule : schedules) {
            const LaunchOutcome got = run<T>(launch, shape, schedule);
            total.wrong += got.output != right.output ? 1 : 0;
            total.diagnosed += got.kinds.empty() ? 0 : 1;
            if (total.example.empty()) total.example = got.text;
            ++total.runs;
        }
    }
    return total;
}

int flash(const Params& p) {
    return attest::cuda::launch_flash(ElementFormat::f32, p, nullptr);
}
int flash_mma(const Params& p) {
    return attest::cuda::launch_flash_mma(ElementFormat::bf16, p, nullptr);
}

ScheduleCount count(std::size_t number) {
    const auto planted = [number](const Params& p) {
        return attest::cuda::launch_planted(number, p, nullptr);
    };
    return attest::cuda::planted_gpu_bugs[number].mma() ? count<__nv_bfloat16>(planted, flash_mma)
                                                        : count<float>(planted, flash);
}

TEST(planted_gpu_bugs, none_is_in_the_kernels) {
    for (const ScheduleCount& control :
         {count<float>(flash, flash), count<__nv_bfloat16>(flash_mma, flash_mma)}) {
        EXPECT_EQ(control.wrong, 0) << "the result depends on the schedule";
        EXPECT_EQ(control.diagnosed, 0) << control.example;
    }
}

TEST(planted_gpu_bugs, are_seen) {
    for (std::size_t number = 0; number < attest::cuda::planted_gpu_bug_count; ++number) {
        const PlantedGpuBug& bug = attest::cuda::planted_gpu_bugs[number];
        if (bug.backward()) continue;  // the museum's, by their laws
        const ScheduleCount seen = count(number);
        ::testing::Test::RecordProperty(std::string(bug.about.id),
                                        std::to_string(seen.wrong) + " wrong, " +
                                            std::to_string(seen.diagnosed) + " diagnosed of " +
                                            std::to_string(seen.runs));
        const bool needs_checker =
            bug.mma() &&
            !(bug.care.barrier_before_load && bug.care.tail_cleared && bug.care.key_tail_cleared);
        if (needs_checker && simt::checker() == nullptr) continue;
        EXPECT_GT(seen.wrong + seen.diagnosed, 0) << bug.about.id << " goes unseen";
    }
}

TEST(planted_gpu_bugs, some_show_only_in_diagnostics) {
    if (simt::checker() == nullptr) GTEST_SKIP() << "not run: this build has no memory checker";
    for (std::size_t number = 0; number < attest::cuda::planted_gpu_bug_count; ++number) {
        const PlantedGpuBug& bug = attest::cuda::planted_gpu_bugs[number];
        if (!bug.mma() || (bug.care.rows_too_many == 0 && bug.care.key_tail_cleared)) continue;
        const ScheduleCount seen = count(number);
        EXPECT_EQ(seen.wrong, 0) << bug.about.id;
        EXPECT_GT(seen.diagnosed, 0) << bug.about.id;
    }
}

}  // namespace
