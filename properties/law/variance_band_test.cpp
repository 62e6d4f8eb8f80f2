// The band of the variance laws against samples drawn from the distributions it is proved for, by a
// generator of its own.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "properties/law/variance_band.hpp"

namespace attest::law {
namespace {

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
    const VarianceBand band = band_of(sample);
    const double mean = sample.squares / static_cast<double>(sample.count);
    return mean >= band.low && mean <= band.high;
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

TEST(Band, NarrowsWithTheSampleAndWidensWithItsNoise) {
    ScoreSample few{1, 0, 0, 100}, many{1, 0, 0, 10000}, noisy{1, 100, 0, 10000};
    EXPECT_LT(band_of(few).low, band_of(many).low);
    EXPECT_GT(band_of(few).high, band_of(many).high);
    EXPECT_GT(band_of(noisy).high, band_of(many).high);
    EXPECT_LT(band_of(noisy).low, band_of(many).low);
}

TEST(Band, ClaimsNoLowerEndForScoresKnownFromAboveAlone) {
    ScoreSample sample{1, 0, 0, 10000};
    sample.bounded = false;
    EXPECT_EQ(band_of(sample).low, 0);
}

}  // namespace
}  // namespace attest::law
