#include "reference/problem/counter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "hwy/targets.h"

namespace attest {
namespace {

/// Frozen: stored failures and certificates name cases by their seed, so these may never change.
TEST(Counter, draws_the_same_on_every_machine) {
    EXPECT_EQ(counter_bits(0, 0, 0), 0x28f9feaebd831d6cu);
    EXPECT_EQ(counter_bits(1, 2, 3), 0x7be5d08559ae9595u);
    EXPECT_EQ(counter_normal(1, 2, 3), -0x1.4924405b344e9p-5);
    EXPECT_EQ(counter_normal(1, 2, 2547508), 0x1.3e7b111eac6bp+2);  // the tail, with its logarithm
}

/// Of a million, in rows of up to 61.
std::uint64_t hash_of_normals() {
    constexpr std::uint64_t count = 1'000'000;
    std::uint64_t hash = 0;
    std::vector<double> row;
    for (std::uint64_t i = 0; i < count; i += row.size()) {
        row.resize(std::min(1 + i % 61, count - i));
        counter_normals(11, 5, i, row);
        for (const double x : row) hash = hash * 0x100000001b3 ^ std::bit_cast<std::uint64_t>(x);
    }
    return hash;
}

/// Frozen, too: made when each number was computed by itself.
TEST(Counter, draws_the_same_in_vectors_of_every_width) {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().DeInit();
        EXPECT_EQ(hash_of_normals(), 0x742c0cdbec564527u);
        EXPECT_EQ(counter_normal(1, 2, 2547508), 0x1.3e7b111eac6bp+2);
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
}

TEST(Counter, one_normal_is_that_of_its_row_whatever_was_asked_before) {
    constexpr std::uint64_t count = 200;
    std::vector<double> row(count);
    for (const std::uint64_t stream : {3u, 4u}) {
        counter_normals(9, stream, 0, row);
        for (const std::uint64_t step : {1u, 2u, 4u, 5u, 77u, 199u})
            for (std::uint64_t n = 0; n < count; ++n) {
                const std::uint64_t index = n * step % count;
                ASSERT_EQ(counter_normal(9, stream, index), row[index]) << step << " " << n;
            }
        EXPECT_NE(counter_normal(8, stream, count - 1), row.back());
        EXPECT_NE(counter_normal(9, stream + 7, count - 1), row.back());
    }
}

// False positive rates below: each statistic is compared with 6 standard deviations of its own
// normal limit, 2e-9 a statistic two-sided; the seeds are fixed, so they hold always or never.
TEST(Counter, normal_has_the_moments_of_a_normal) {
    const int count = 1'000'000;
    double sum = 0, square = 0, fourth = 0, neighbours = 0, last = 0;
    for (int i = 0; i < count; ++i) {
        const double x = counter_normal(7, 1, static_cast<std::uint64_t>(i));
        sum += x, square += x * x, fourth += x * x * x * x, neighbours += x * last;
        last = x;
    }
    const double root = std::sqrt(count);
    EXPECT_LE(std::fabs(sum) / root, 6);
    EXPECT_LE(std::fabs(square - count) / (root * std::sqrt(2.0)), 6);
    EXPECT_LE(std::fabs(fourth - 3.0 * count) / (root * std::sqrt(96.0)), 6);
    EXPECT_LE(std::fabs(neighbours) / root, 6);
}

TEST(Counter, uniform_fills_the_unit_interval) {
    const int count = 1'000'000, cells = 100;
    std::vector<int> counts(cells);
    for (int i = 0; i < count; ++i) {
        const double u = counter_uniform(7, 2, static_cast<std::uint64_t>(i));
        ASSERT_GE(u, 0.0);
        ASSERT_LT(u, 1.0);
        ++counts[static_cast<std::size_t>(u * cells)];
    }
    double chi_square = 0;
    const double each = static_cast<double>(count) / cells;
    for (const int n : counts) chi_square += (n - each) * (n - each) / each;
    EXPECT_LE(std::fabs(chi_square - (cells - 1)) / std::sqrt(2.0 * (cells - 1)), 6);
}

/// Streams, seeds and indices that differ in one bit must not correlate: mean of products of signs.
TEST(Counter, neighbouring_seeds_streams_and_indices_are_independent) {
    const int count = 100'000;
    const auto sign = [](std::uint64_t bits) { return bits >> 63 != 0 ? 1.0 : -1.0; };
    double seeds = 0, streams = 0, crossed = 0;
    for (int n = 0; n < count; ++n) {
        const auto i = static_cast<std::uint64_t>(n);
        seeds += sign(counter_bits(i, 0, 0)) * sign(counter_bits(i + 1, 0, 0));
        streams += sign(counter_bits(0, i, 0)) * sign(counter_bits(0, i + 1, 0));
        crossed += sign(counter_bits(i, 0, 1)) * sign(counter_bits(i, 1, 0));
    }
    for (const double sum : {seeds, streams, crossed})
        EXPECT_LE(std::fabs(sum) / std::sqrt(count), 6);
}

/// The quantile against the error function: for x = quantile(p), Phi(x) is p within what an error
/// of 1e-15 relative in x, doubled for erfc's own, moves it: |x| phi(x) 2e-15 plus an ulp of p.
TEST(Counter, normal_inverts_its_distribution) {
    for (std::uint64_t i = 0; i < 200'000; ++i) {
        const double p = (static_cast<double>(counter_bits(3, 4, i) >> 12) + 0.5) * 0x1p-52;
        const double x = counter_normal(3, 4, i);
        const double tail = 0.5 * std::erfc(std::fabs(x) / std::sqrt(2.0));
        const double expected = std::min(p, 1 - p);
        const double density = std::exp(-x * x / 2) * 0.3989422804014327;
        const double bound = density * std::fabs(x) * 4e-15 + expected * 8e-16 + 0x1p-52;
        ASSERT_LE(std::fabs(tail - expected), bound) << x;
    }
}

}  // namespace
}  // namespace attest
