// The bounds must hold where the assumption does, and bite where it does not.

#include "properties/law/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/problem/counter.hpp"
#include "reference/problem/errors.hpp"

namespace attest::law {
namespace {

TEST(Statistics, SelfNormalisedSumsStayWithinTheirRate) {
    // 4000 sums of 16 terms of wildly different sizes; at rate 1/20 at most 1 in 20 may be beyond,
    // and by Hoeffding 4000 trials exceed a true rate of 1/20 by 0.03 with chance below exp(-7).
    int beyond = 0;
    for (std::uint64_t trial = 0; trial < 4000; ++trial) {
        SelfNormalised sum;
        for (std::uint64_t i = 0; i < 16; ++i)
            sum.add(counter_normal(1, trial, i) * std::exp2(static_cast<double>(i % 3)));
        beyond += !(std::abs(sum.value()) <= SelfNormalised::threshold(0.05));
    }
    EXPECT_LE(beyond, 4000 * 0.08);
    EXPECT_GT(beyond, 0);
}

TEST(Statistics, ABiasIsSeen) {
    SelfNormalised sum;
    for (std::uint64_t i = 0; i < 400; ++i) sum.add(counter_normal(2, 0, i) + 0.5);
    EXPECT_GT(sum.value(), SelfNormalised::threshold(1e-9));
    const Statistic statistic = sum.statistic("bias", 1e-9);
    EXPECT_EQ(statistic.samples, 400);
    EXPECT_EQ(statistic.value, sum.value());
}

TEST(Statistics, NanNeverLooksSmall) {
    SelfNormalised sum;
    EXPECT_EQ(sum.value(), 0.0);
    sum.add(1);
    sum.add(infinite);
    EXPECT_FALSE(std::abs(sum.value()) <= 100.0);
}

TEST(Statistics, ImpossibleRatesAreRefused) {
    EXPECT_THROW(SelfNormalised::threshold(0), InternalError);
    EXPECT_THROW(SelfNormalised::threshold(1), InternalError);
}

}  // namespace
}  // namespace attest::law
