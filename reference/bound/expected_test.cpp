// The interval test and its ratio, by kind: a comparator that lets NaN through, or skips what is
// not finite, turns these red.

#include "reference/bound/expected.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/bound/next.hpp"
#include "reference/problem/counter.hpp"

namespace attest::bound {
namespace {

constexpr auto yes = Agreement::agrees, no = Agreement::disagrees, open = Agreement::undecided;

ExpectedElement element(double value, double error, double bound) {
    return {.value = value, .error = error, .bound = bound};
}

TEST(judge, the_interval_is_rounded_to_the_format) {
    // 1 + 2^-9 lies between bf16 neighbours 1 and 1 + 2^-7, nearest 1.
    const ExpectedElement e = element(1 + 0x1p-9, 0, 0x1p-20);
    EXPECT_EQ(judge(1.0, e, Precision::bf16), yes);
    EXPECT_EQ(judge(1 + 0x1p-7, e, Precision::bf16), no);
    EXPECT_EQ(judge(1 + 0x1p-9, e, Precision::f32), yes);
    EXPECT_EQ(judge(1.0, e, Precision::f32), no);
}

TEST(judge, a_midpoint_within_the_bound_admits_both_neighbours) {
    const ExpectedElement e = element(1 + 0x1p-8, 0, 0x1p-20);
    EXPECT_EQ(judge(1.0, e, Precision::bf16), yes);
    EXPECT_EQ(judge(1 + 0x1p-7, e, Precision::bf16), yes);
}

TEST(judge, a_bound_that_is_no_number_accuses_nobody) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(judge(0, element(0, 0, none), Precision::f32), open);
    EXPECT_EQ(judge(1, element(0, none, 1), Precision::f32), open);
}

TEST(judge, an_exact_expectation_admits_one_number) {
    EXPECT_EQ(judge(0.5, element(0.5, 0, 0), Precision::f64), yes);
    EXPECT_EQ(judge(std::nextafter(0.5, 1), element(0.5, 0, 0), Precision::f64), no);
    EXPECT_EQ(judge(-0.0, element(0, 0, 0), Precision::f64), yes);
}

TEST(judge, between_the_two_intervals_nothing_is_decided) {
    const ExpectedElement e = element(1, 0x1p-20, 0x1p-10);
    EXPECT_EQ(judge(1 + 0x1p-11, e, Precision::f64), yes);
    EXPECT_EQ(judge(1 + 0x1p-10, e, Precision::f64), open);
    EXPECT_EQ(judge(1 + 0x1p-9, e, Precision::f64), no);
    EXPECT_EQ(judge(1, element(1, infinite, 1), Precision::f64), open);
}

TEST(judge, nan_never_agrees_with_a_number) {
    EXPECT_EQ(judge(NAN, element(1, 0, 1), Precision::f32), no);
    EXPECT_EQ(judge(NAN, element(0, 0, 0), Precision::f32), no);
    EXPECT_EQ(judge(infinite, element(1, 0, 1), Precision::f32), no);
    EXPECT_EQ(judge(NAN, element(infinite, 0, 0), Precision::f32), no);
}

TEST(judge, what_is_not_finite_is_met_by_kind) {
    EXPECT_EQ(judge(NAN, element(NAN, 0, 0), Precision::f32), yes);
    EXPECT_EQ(judge(1, element(NAN, 0, 0), Precision::f32), no);
    EXPECT_EQ(judge(infinite, element(NAN, 0, 0), Precision::f32), no);
    EXPECT_EQ(judge(infinite, element(NAN, 0, infinite), Precision::f32), yes);
    EXPECT_EQ(judge(1, element(NAN, 0, infinite), Precision::f32), no);
    EXPECT_EQ(judge(-infinite, element(-infinite, 0, 0), Precision::f32), yes);
    EXPECT_EQ(judge(infinite, element(-infinite, 0, 0), Precision::f32), no);
    EXPECT_EQ(judge(-1e38, element(-infinite, 0, 0), Precision::f32), no);
}

TEST(judge, an_infinite_bound_claims_nothing) {
    for (const double x : {0.0, 1e300, infinite, static_cast<double>(NAN)})
        EXPECT_EQ(judge(x, element(0, 0, infinite), Precision::f32), yes);
}

TEST(judge, overflow_to_infinity_agrees_only_where_the_interval_reaches_it) {
    EXPECT_EQ(judge(infinite, element(65504, 0, 20), Precision::f16), yes);
    EXPECT_EQ(judge(infinite, element(65504, 0, 10), Precision::f16), no);
}

TEST(error_ratio, measures_against_bound_and_rounding) {
    EXPECT_EQ(error_ratio(1, element(1, 0, 0), Precision::f32), 0);
    EXPECT_NEAR(error_ratio(1 + 0x1p-11, element(1, 0, 0x1p-10), Precision::f64), 0.5, 1e-3);
    EXPECT_GT(error_ratio(1 + 0x1p-5, element(1, 0, 0x1p-10), Precision::f32), 1);
    EXPECT_EQ(error_ratio(NAN, element(1, 0, 1), Precision::f32), infinite);
    EXPECT_EQ(error_ratio(1, element(NAN, 0, 0), Precision::f32), infinite);
    EXPECT_EQ(error_ratio(NAN, element(NAN, 0, 0), Precision::f32), 0);
    EXPECT_EQ(error_ratio(infinite, element(65504, 0, 20), Precision::f16), 1);
}

TEST(Next, IsWhatNextafterSays) {
    const double infinite = std::numeric_limits<double>::infinity();
    std::vector<double> all = {0.0,  -0.0,      infinite,   -infinite, 1.0,
                               -1.0, 0x1p-1074, -0x1p-1074, 0x1p-1022, -0x1p-1022};
    all.push_back(std::numeric_limits<double>::max());
    all.push_back(-std::numeric_limits<double>::max());
    for (std::uint64_t i = 0; i < 100'000; ++i) {
        const double x = std::bit_cast<double>(counter_bits(6, 0, i));
        if (!std::isnan(x)) all.push_back(x);
    }
    for (const double x : all) {
        EXPECT_EQ(next_up(x), std::nextafter(x, infinite)) << x;
        EXPECT_EQ(next_down(x), std::nextafter(x, -infinite)) << x;
    }
    EXPECT_TRUE(std::isnan(next_up(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace attest::bound
