// The kernels against the definition in long double, over random problems of every feature. The
// bound is derived in test_want.cpp.

#include <array>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/test_call.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cpu {
namespace {

constexpr int seeds = 600;

bool rounds_weights(const kernel::BuiltinKernel& kernel) {
    return std::string(kernel.api->manifest).find("\"weights\": \"same\"") != std::string::npos;
}

const kernel::BuiltinKernel& kernel_named(std::string_view id) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        if (kernel.id == id) return kernel;
    }
    throw std::invalid_argument("no such kernel");
}

/// The case without what the kernel refuses by design.
TestCase trimmed(TestCase t, std::string_view id) {
    if (id != "cpu_decode") t.problem.splits = 0;
    return t;
}

TEST(Features, EveryKernelAgreesWithTheDefinition) {
    std::map<std::string_view, int> tried;
    for (unsigned seed = 0; seed < seeds; ++seed) {
        const TestCase drawn = draw_any(seed);
        const Wanted rounded = want(drawn, true), unrounded = want(drawn, false);
        for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
            const TestCase t = trimmed(drawn, kernel.id);
            if (!supported(*kernel.api, t.problem)) continue;
            ++tried[kernel.id];
            const Wanted& wanted = rounds_weights(kernel) ? rounded : unrounded;
            ASSERT_EQ(complaint(run(*kernel.api, t), wanted), "") << kernel.id << ", seed " << seed;
        }
    }
    EXPECT_EQ(tried["cpu_naive"], seeds);
    EXPECT_EQ(tried["cpu_flash"], seeds);
    EXPECT_EQ(tried["cpu_decode"], seeds);
    EXPECT_GT(tried["cpu_flash_plain"], seeds / 5);
}

TEST(Features, TheDrawHoldsEveryFeature) {
    std::array<int, 12> count{};
    for (unsigned seed = 0; seed < seeds; ++seed) {
        const TestCase t = draw_any(seed);
        const attest_problem& p = t.problem;
        count[0] += p.causal != 0;
        count[1] += p.window_left >= 0;
        count[2] += !t.lens_kv.empty();
        count[3] += !t.lens_q.empty();
        count[4] += p.mask_kind == ATTEST_MASK_BOOL;
        count[5] += p.mask_kind == ATTEST_MASK_ADDITIVE;
        count[6] += p.softcap != 0;
        count[7] += p.sink != 0;
        count[8] += p.alibi != 0;
        count[9] += p.rope_kind != ATTEST_ROPE_NONE;
        count[10] += (p.flags & ATTEST_FLAG_PACKED) != 0;
        count[11] += p.page_size != 0;
    }
    for (std::size_t n = 0; n < count.size(); ++n)
        EXPECT_GT(count[n], seeds / 20) << "feature " << n;
}

TEST(Features, LongRowsCrossManyTiles) {
    for (const std::int32_t format : {ATTEST_F64, ATTEST_F32, ATTEST_F16, ATTEST_BF16}) {
        for (const std::int64_t length : {63, 64, 65, 127, 128, 129, 300}) {
            for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
                attest_problem p = problem_of(2, 1, 3, length, 24, format);
                if (!supported(*kernel.api, p)) continue;
                const TestCase t = draw(p, static_cast<unsigned>(length), 50);
                EXPECT_EQ(complaint(run(*kernel.api, t), want(t, rounds_weights(kernel))), "")
                    << kernel.id << ", " << length << " keys, format " << format;
            }
        }
    }
}

TEST(Features, ScoresBeyondTheRangeOfExpStayFinite) {
    for (const double offset : {-2e4, -300.0, 300.0, 2e4}) {
        for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
            attest_problem p = problem_of(1, 1, 4, 100, 8, ATTEST_F32);
            p.mask_kind = ATTEST_MASK_ADDITIVE;
            TestCase t = draw(p, 7);
            t.mask_shape[2] = 4;
            t.mask_shape[3] = 100;
            for (std::size_t n = 0; n < 400; ++n) t.mask.push_back(offset);
            t.mask.resize(400);
            for (double& m : t.mask) m = offset;
            EXPECT_EQ(complaint(run(*kernel.api, t), want(t, rounds_weights(kernel))), "")
                << kernel.id << ", scores about " << offset;
        }
    }
}

TEST(Features, WhatIsNotOfferedIsRefusedWithAReason) {
    char reason[128] = {};
    attest_problem p = problem_of(1, 1, 2, 2, 4);
    p.dropout_p = 0.1;
    EXPECT_EQ(kernel_named("cpu_decode").api->supports(nullptr, &p, reason, sizeof reason), 0);
    EXPECT_STREQ(reason, "dropout is not implemented");
    EXPECT_TRUE(supported(*kernel_named("cpu_flash").api, p));
    p.dropout_p = 1;
    EXPECT_FALSE(supported(*kernel_named("cpu_flash").api, p));
    p.dropout_p = 0;
    p.splits = 2;
    EXPECT_FALSE(supported(*kernel_named("cpu_naive").api, p));
    EXPECT_TRUE(supported(*kernel_named("cpu_decode").api, p));
    p.splits = 0;
    p.format_kv = ATTEST_F64;
    EXPECT_FALSE(supported(*kernel_named("cpu_flash_plain").api, p));
}

}  // namespace
}  // namespace attest::cpu
