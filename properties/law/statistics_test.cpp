// The bounds must hold where the assumption does, and bite where it does not.

#include "properties/law/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/problem/counter.hpp"
#include "reference/problem/errors.hpp"

namespace attest {
namespace {

/// P(K >= k) or P(K <= k), whichever is on count's side, summed exactly.
double exact_tail(std::int64_t n, std::int64_t count, double p) {
    const bool upper = static_cast<double>(count) >= static_cast<double>(n) * p;
    double total = 0;
    for (std::int64_t k = upper ? count : 0; k <= (upper ? n : count); ++k)
        total += std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) +
                          static_cast<double>(k) * std::log(p) +
                          static_cast<double>(n - k) * std::log1p(-p));
    return total;
}

TEST(Statistics, BinomialTailBoundsTheExactTail) {
    for (const std::int64_t n : {1, 7, 40, 200})
        for (const double p : {0.1, 0.5, 0.83})
            for (std::int64_t count = 0; count <= n; ++count) {
                const double exact = exact_tail(n, count, p), bound = binomial_tail(n, count, p);
                EXPECT_LE(exact, bound * (1 + 1e-9)) << n << " " << count << " " << p;
                // Chernoff loses no more than a factor of n + 1 (method of types).
                EXPECT_GE(exact * static_cast<double>(n + 1), bound * (1 - 1e-9));
            }
    EXPECT_EQ(binomial_tail(0, 0, 0.5), 1.0);
}

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
    sum.add(std::numeric_limits<double>::infinity());
    EXPECT_FALSE(std::abs(sum.value()) <= 100.0);
}

TEST(Statistics, ChiSquareStaysWithinItsRate) {
    for (const std::int64_t n : {1, 8, 64}) {
        const ChiSquareInterval interval = chi_square_interval(n, 0.05);
        int beyond = 0;
        for (std::uint64_t trial = 0; trial < 2000; ++trial) {
            double x = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const double z = counter_normal(3, trial, static_cast<std::uint64_t>(i));
                x += z * z;
            }
            beyond += !(x >= interval.low && x <= interval.high);
        }
        EXPECT_LE(beyond, 2000 * 0.09) << n;
    }
    const ChiSquareInterval wide = chi_square_interval(10'000, 1e-6);
    EXPECT_GT(wide.low, 9'000);  // a variance off by 12 % is seen in ten thousand samples
    EXPECT_LT(wide.high, 11'200);
}

TEST(Statistics, ImpossibleRatesAreRefused) {
    EXPECT_THROW(SelfNormalised::threshold(0), InternalError);
    EXPECT_THROW(chi_square_interval(0, 0.1), InternalError);
    EXPECT_THROW(binomial_tail(3, 4, 0.5), InternalError);
    EXPECT_THROW(binomial_tail(3, 1, 1.0), InternalError);
}

}  // namespace
}  // namespace attest
