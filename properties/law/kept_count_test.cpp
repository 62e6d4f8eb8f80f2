#include "properties/law/kept_count.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace attest::law {
namespace {

KeptCount count(double chance, std::int64_t of, std::int64_t hits) {
    return {"cells", chance, of, hits};
}

/// P(X >= hits) or P(X <= hits) of a binomial, whichever is the smaller tail, term by term.
double tail(const KeptCount& c) {
    const bool upper = static_cast<double>(c.hits) > c.chance * static_cast<double>(c.of);
    const auto n = static_cast<double>(c.of);
    double sum = 0;
    for (std::int64_t k = upper ? c.hits : 0; k <= (upper ? c.of : c.hits); ++k) {
        const auto x = static_cast<double>(k);
        sum += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                        x * std::log(c.chance) + (n - x) * std::log1p(-c.chance));
    }
    return sum;
}

// Chernoff's bound is one: no tail is above it.
TEST(KeptCount, NoTailIsLikelierThanItsSurpriseSays) {
    for (const double chance : {0x1p-10, 0.25, 0.5, 0.984375})
        for (std::int64_t hits = 0; hits <= 200; ++hits) {
            const KeptCount c = count(chance, 200, hits);
            EXPECT_LE(tail(c), std::exp(-c.surprise()) * (1 + 1e-9)) << chance << " " << hits;
        }
}

TEST(KeptCount, AccusesWhatChanceDoesNotGive) {
    EXPECT_FALSE(judge_counts({count(0.25, 10000, 2500)}).violated());
    EXPECT_FALSE(judge_counts({count(0.25, 10000, 2620)}).violated());
    EXPECT_TRUE(judge_counts({count(0.25, 10000, 3000)}).violated());
    EXPECT_TRUE(judge_counts({count(0x1p-10, 24576, 0)}).violated());
    EXPECT_TRUE(judge_counts({count(0.5, 1000, 500), count(0.625, 1000, 1000)}).violated());
    EXPECT_TRUE(judge_counts({count(0.5, 0, 0)}).compared_nothing());
    EXPECT_EQ(judge_counts({count(0.5, 10, 5)}).statistic->false_positive_rate, kept_rate);
}

// What is listed first explains what follows from it.
TEST(KeptCount, OfSeveralThatAreASurpriseTheFirstIsTold) {
    const KeptCount right = count(0.5, 1000, 500), first = count(0.25, 1000, 400),
                    worse = count(0.5, 1000, 1000);
    EXPECT_EQ(judge_counts({right, first, worse}).violation->expected, first.chance);
    EXPECT_EQ(judge_counts({right, worse, first}).violation->expected, worse.chance);
}

// What is observed is farther from what is expected than the bound beside it, and by no more than
// one count where the next is no surprise.
TEST(KeptCount, TheBoundIsWhereTheSurpriseBegins) {
    std::int64_t hits = 0;
    while (judge_counts({count(0x1p-10, 12000, hits)}).violated()) ++hits;
    while (!judge_counts({count(0x1p-10, 12000, hits)}).violated()) ++hits;
    const Judgement judged = judge_counts({count(0x1p-10, 12000, hits)});
    const double apart = judged.violation->observed - judged.violation->expected;
    EXPECT_GT(apart, judged.violation->bound);
    EXPECT_LE(apart - 1.0 / 12000, judged.violation->bound);
}

}  // namespace
}  // namespace attest::law
