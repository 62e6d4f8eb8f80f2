// The band of the variance laws against samples drawn from the distributions it is proved for, by a
// generator of its own.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "properties/law/score_sampling.hpp"
#include "properties/law/variance_band.hpp"

namespace attest::law {
namespace {

constexpr double rate = 1e-9;

ScoreSample signs(std::mt19937_64& random, std::int64_t count, int dim, double scale) {
    ScoreSample sample;
    for (std::int64_t at = 0; at < count; ++at) {
        double sum = 0;
        for (int c = 0; c < dim; ++c) sum += (random() >> 63) != 0 ? 1 : -1;
        sample.squares += sum * sum * scale * scale;
        ++sample.count;
    }
    return sample;
}

bool inside(const ScoreSample& sample) {
    const VarianceBand band = band_of(sample, rate);
    return sample.mean() >= band.low && sample.mean() <= band.high;
}

// 20000 samples at a rate of 1e-9: one outside would be a fault of the proof, not bad luck.
TEST(Band, IsNeverLeftByScoresOfVarianceOne) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 20000; ++round) {
        const int dim = 1 << (round % 5);
        EXPECT_TRUE(inside(signs(random, 32 + round % 200, dim, 1 / std::sqrt(dim))));
    }
}

TEST(Band, IsLeftByHalfAndByTwiceTheDeviation) {
    std::mt19937_64 random(6);
    for (int round = 0; round < 50; ++round) {
        EXPECT_FALSE(inside(signs(random, 512, 16, 0.5 / 4)));
        EXPECT_FALSE(inside(signs(random, 512, 16, 2.0 / 4)));
    }
}

// What the variance laws take in all: a scale 3 % off stands out, one 1 % off does not.
TEST(Band, IsLeftByThreeInAHundredAtTheirLastStage) {
    std::mt19937_64 random(7);
    for (const double off : {0.97, 1.03})
        EXPECT_FALSE(inside(signs(random, 65536, 16, off / 4))) << off;
    for (const double off : {0.99, 1.01})
        EXPECT_TRUE(inside(signs(random, 65536, 16, off / 4))) << off;
}

// Of a quick run 4 or 5 % stand out, of a run of core 1.5 %: no case by itself shows either.
TEST(Band, OfAllCasesTogetherIsAsSharpAsTheirNumber) {
    std::mt19937_64 random(8);
    const auto doubted = [&](int cases, double off) {
        ScoreSample all;
        for (int n = 0; n < cases; ++n) {
            const ScoreSample one = signs(random, 256, 16, off / 4);
            EXPECT_TRUE(inside(one)) << off;
            all.add(one);
        }
        const Pooled pooled = pooled_variance({all});
        EXPECT_EQ(pooled.statistic.samples, 256 * cases);
        EXPECT_EQ(pooled.statistic.false_positive_rate, rate);
        return pooled.doubt.has_value();
    };
    for (const double off : {0.95, 1.04}) EXPECT_TRUE(doubted(120, off)) << off;
    for (const double off : {0.985, 1.015}) EXPECT_TRUE(doubted(1200, off)) << off;
    EXPECT_FALSE(doubted(120, 1));
    EXPECT_FALSE(doubted(1200, 1));
}

TEST(Band, NarrowsWithTheSampleAndWidensWithItsNoise) {
    ScoreSample few{1, 0, 0, 100}, many{1, 0, 0, 10000}, noisy{1, 100, 0, 10000};
    EXPECT_LT(band_of(few, rate).low, band_of(many, rate).low);
    EXPECT_GT(band_of(few, rate).high, band_of(many, rate).high);
    EXPECT_GT(band_of(noisy, rate).high, band_of(many, rate).high);
    EXPECT_LT(band_of(noisy, rate).low, band_of(many, rate).low);
}

}  // namespace
}  // namespace attest::law
