// What must hold to the bit: the same call twice, other strides, pages, what else is in the batch.

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/cpu/test_call.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cpu {
namespace {

constexpr unsigned seeds_compared = 300;

TestCase drawn_for(const kernel::BuiltinKernel& kernel, unsigned seed) {
    TestCase t = draw_any(seed);
    if (kernel.id != "cpu_decode") t.problem.splits = 0;
    return t;
}

TEST(Identity, TheSameCallGivesTheSameBitsWhateverTheWorkspaceHeld) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        for (unsigned seed = 0; seed < seeds_compared; ++seed) {
            TestCase t = drawn_for(kernel, seed);
            if (!supported(*kernel.api, t.problem)) continue;
            const TestAnswer first = run(*kernel.api, t);
            t.workspace_fill = 0xff;  // NaN in every format
            EXPECT_EQ(run(*kernel.api, t), first) << kernel.id << ", seed " << seed;
        }
    }
}

TEST(Identity, StridesChangeNoBit) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        for (unsigned seed = 0; seed < seeds_compared; ++seed) {
            TestCase t = drawn_for(kernel, seed);
            if (!supported(*kernel.api, t.problem)) continue;
            const TestAnswer strided = run(*kernel.api, t);
            t.lay_q = t.lay_k = t.lay_v = t.lay_o = Lay{};
            EXPECT_EQ(run(*kernel.api, t), strided) << kernel.id << ", seed " << seed;
        }
    }
}

TEST(Identity, RingsChangeNoBit) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        int tried = 0;
        for (unsigned seed = 0; seed < 4 * seeds_compared; ++seed) {
            TestCase t = drawn_for(kernel, seed);
            if ((t.problem.flags & ATTEST_FLAG_RING) == 0) continue;
            if (!supported(*kernel.api, t.problem)) continue;
            tried += t.problem.window_left >= 0;
            const TestAnswer in_ring = run(*kernel.api, t);
            t.problem.flags &= ~unsigned{ATTEST_FLAG_RING};
            EXPECT_EQ(run(*kernel.api, t), in_ring) << kernel.id << ", seed " << seed;
        }
        EXPECT_GE(tried, kernel.id == "cpu_flash_plain" ? 0 : 10) << kernel.id;
    }
}

TEST(Identity, PagesChangeNoBit) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        int tried = 0;
        for (unsigned seed = 0; seed < 4 * seeds_compared; ++seed) {
            TestCase t = drawn_for(kernel, seed);
            if (t.problem.page_size == 0 || !supported(*kernel.api, t.problem)) continue;
            ++tried;
            const TestAnswer paged = run(*kernel.api, t);
            t.page_seed = 99;
            EXPECT_EQ(run(*kernel.api, t), paged) << kernel.id << ", other pages, seed " << seed;
            t.problem.page_size = 0;
            EXPECT_EQ(run(*kernel.api, t), paged) << kernel.id << ", contiguous, seed " << seed;
        }
        EXPECT_GE(tried, kernel.id == "cpu_flash_plain" ? 0 : 50) << kernel.id;
    }
}

template <typename T>
void keep_part(std::vector<T>& values, std::int64_t parts, std::int64_t part) {
    const auto size = static_cast<std::int64_t>(values.size()) / parts;
    values = std::vector<T>(values.begin() + part * size, values.begin() + (part + 1) * size);
}

TEST(Identity, ASequenceAloneGivesTheBitsItGivesInABatch) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        for (unsigned seed = 0; seed < 2 * seeds_compared; ++seed) {
            const TestCase t = drawn_for(kernel, seed);
            const std::int64_t batch = t.problem.batch;
            if (batch < 2 || !supported(*kernel.api, t.problem)) continue;
            const TestAnswer together = run(*kernel.api, t);
            for (std::int64_t b = 0; b < batch; ++b) {
                TestCase alone = t;
                alone.problem.batch = 1;
                for (auto* values : {&alone.q, &alone.k, &alone.v}) keep_part(*values, batch, b);
                if (t.mask_shape[0] > 1) keep_part(alone.mask, batch, b);
                alone.mask_shape[0] = 1;
                for (auto* lens : {&alone.lens_q, &alone.lens_kv}) {
                    if (!lens->empty()) keep_part(*lens, batch, b);
                }
                TestAnswer part = together;
                keep_part(part.o, batch, b);
                if (!part.lse.empty()) keep_part(part.lse, batch, b);
                EXPECT_EQ(run(*kernel.api, alone), part) << kernel.id << ", seed " << seed;
            }
        }
    }
}

TEST(Identity, TooSmallAWorkspaceIsAnError) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        const TestCase t = draw(problem_of(2, 1, 3, 5, 4), 1);
        attest_kernel_api stingy = *kernel.api;
        stingy.workspace = [](void*, const attest_problem*) { return std::size_t{64}; };
        const TestAnswer answer = run(stingy, t);
        EXPECT_NE(answer.code, 0) << kernel.id;
        EXPECT_EQ(answer.error, "the workspace is smaller than asked for");
    }
}

}  // namespace
}  // namespace attest::cpu
