// NaN and infinity: what is hidden must not leak, what is visible must not be lost. And shapes at
// their smallest.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/cpu/test_call.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cpu {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

void poison_key(TestCase& t, std::int64_t b, std::int64_t h, std::int64_t j, double value) {
    const attest_problem& p = t.problem;
    const std::int64_t row = (b * p.heads_kv + h) * p.len_kv + j;
    for (std::int64_t c = 0; c < p.dim_qk; ++c) {
        t.k[static_cast<std::size_t>(row * p.dim_qk + c)] = value;
    }
    for (std::int64_t c = 0; c < p.dim_v; ++c) {
        t.v[static_cast<std::size_t>(row * p.dim_v + c)] = value;
    }
}

TEST(Nonfinite, PoisonBehindTheLengthChangesNoBit) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        for (unsigned seed = 0; seed < 1000; ++seed) {
            TestCase t = draw_any(seed);
            if (kernel.id != "cpu_decode") t.problem.splits = 0;
            if (t.lens_kv.empty() || !supported(*kernel.api, t.problem)) continue;
            const TestAnswer clean = run(*kernel.api, t);
            for (const double value : {nan_value, infinity}) {
                for (std::int64_t b = 0; b < t.problem.batch; ++b) {
                    for (std::int64_t h = 0; h < t.problem.heads_kv; ++h) {
                        for (std::int64_t j = t.lens_kv[static_cast<std::size_t>(b)];
                             j < t.problem.len_kv; ++j) {
                            poison_key(t, b, h, j, value);
                        }
                    }
                }
                EXPECT_EQ(run(*kernel.api, t), clean) << kernel.id << ", seed " << seed;
            }
        }
    }
}

/// Causal, 5 queries over 5 keys: key j is seen by the queries from j on.
TEST(Nonfinite, NanReachesTheRowsThatSeeItAndNoOther) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        for (const std::int32_t format : {ATTEST_F32, ATTEST_F16, ATTEST_BF16}) {
            for (const std::int64_t length : {5, 70, 140}) {
                attest_problem p = problem_of(1, 1, length, length, 9, format);
                p.causal = 1;
                TestCase t = draw(p, 3);
                const TestAnswer clean = run(*kernel.api, t);
                const std::int64_t at = length - 3;
                for (const bool in_key : {true, false}) {
                    TestCase bad = t;
                    auto& values = in_key ? bad.k : bad.v;
                    values[static_cast<std::size_t>(at * 9)] = nan_value;
                    const TestAnswer seen = run(*kernel.api, bad);
                    for (std::int64_t i = 0; i < length; ++i) {
                        const auto n = static_cast<std::size_t>(i * 9);
                        if (i < at) {
                            EXPECT_EQ(seen.o[n], clean.o[n]) << kernel.id << " row " << i;
                        } else {
                            EXPECT_TRUE(std::isnan(seen.o[n])) << kernel.id << " row " << i;
                            EXPECT_EQ(std::isnan(seen.o[n + 1]), in_key);
                            EXPECT_EQ(std::isnan(seen.lse[static_cast<std::size_t>(i)]), in_key);
                        }
                    }
                }
            }
        }
    }
}

TEST(Nonfinite, AnInfiniteScoreIsNanAndAnInfiniteValueIsInfinite) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        TestCase t = draw(problem_of(1, 1, 1, 80, 4), 5);
        for (double& x : t.q) x = 1;
        TestCase bad = t;
        bad.k[4 * 70] = infinity;  // score inf: exp(inf - inf)
        const TestAnswer scores = run(*kernel.api, bad);
        for (const double x : scores.o) EXPECT_TRUE(std::isnan(x)) << kernel.id;
        bad = t;
        bad.v[4 * 2] = infinity;
        const TestAnswer values = run(*kernel.api, bad);
        EXPECT_TRUE(std::isinf(values.o[0])) << kernel.id;
        EXPECT_TRUE(std::isfinite(values.o[1])) << kernel.id;
        bad = t;
        bad.k[4 * 70] = -infinity;  // score -inf by overflow: weight 0, and the rest as before
        const TestAnswer none = run(*kernel.api, bad);
        for (const double x : none.o) EXPECT_TRUE(std::isfinite(x)) << kernel.id;
    }
}

TEST(Nonfinite, ScoresAllOfMinusInfinityAreNan) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        TestCase t = draw(problem_of(1, 1, 2, 70, 4), 5);
        for (double& x : t.q) x = 1;
        for (double& x : t.k) x = -infinity;
        const TestAnswer answer = run(*kernel.api, t);
        for (const double x : answer.o) EXPECT_TRUE(std::isnan(x)) << kernel.id;
    }
}

TEST(Degenerate, EmptyAxesAndEmptyRows) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        for (const auto& [queries, keys] : {std::pair{0, 5}, {3, 0}, {0, 0}, {1, 1}}) {
            const TestCase t = draw(problem_of(2, 1, queries, keys, 3), 1);
            EXPECT_EQ(complaint(run(*kernel.api, t), want(t, true)), "") << kernel.id;
        }
        attest_problem causal = problem_of(2, 2, 9, 4, 3);
        causal.causal = 1;  // the first five queries stand before key 0
        const TestCase t = draw(causal, 1);
        const TestAnswer answer = run(*kernel.api, t);
        EXPECT_EQ(complaint(answer, want(t, true)), "") << kernel.id;
        EXPECT_EQ(answer.lse[4], -infinity);
        EXPECT_NE(answer.lse[5], -infinity);
        EXPECT_EQ(answer.o[4 * 3], 0.0);
    }
}

TEST(Degenerate, OneKeyIsCopiedToTheBit) {
    for (const kernel::BuiltinKernel& kernel : cpu_kernels()) {
        for (const std::int32_t format : {ATTEST_F64, ATTEST_F32, ATTEST_F16, ATTEST_BF16}) {
            attest_problem p = problem_of(3, 1, 2, 1, 17, format);
            if (!supported(*kernel.api, p)) continue;
            const TestCase t = draw(p, 11, 100);
            const TestAnswer answer = run(*kernel.api, t);
            for (std::size_t n = 0; n < answer.o.size(); ++n) EXPECT_EQ(answer.o[n], t.v[n % 17]);
        }
    }
}

}  // namespace
}  // namespace attest::cpu
