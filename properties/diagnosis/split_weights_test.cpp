// Weights taken by the largest score of each split, as the problem asks for splits, and changed
// there.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/actor_test.hpp"

namespace attest::diagnosis {
namespace {

/// A weight by the largest of its split becomes what this returns, in the sum over values and,
/// where it says so, in that of the weights.
Answer by_splits(double (*weight)(double w), bool in_sum) {
    return [weight, in_sum](const Specification& s, const bound::Expected& truth) {
        const auto splits = static_cast<std::size_t>(std::max<std::int64_t>(1, s.problem.splits));
        const auto row = [=](const std::vector<double>& below, const std::vector<double>& values) {
            const std::size_t each = (below.size() + splits - 1) / splits;
            RowAnswer answer;
            for (std::size_t from = 0; from < below.size(); from += each) {
                const std::size_t to = std::min(from + each, below.size());
                double most = below[from];
                for (std::size_t j = from; j < to; ++j) most = std::max(most, below[j]);
                for (std::size_t j = from; j < to; ++j) {
                    const double w = std::exp(below[j] - most);
                    answer.sum += (in_sum ? weight(w) : w) * std::exp(most);
                    answer.output += weight(w) * values[j] * std::exp(most);
                }
            }
            answer.output /= answer.sum;
            return answer;
        };
        return row_by_row(row)(s, truth);
    };
}

void expect_named(const Answer& answer, const std::string& says, const std::string& values) {
    for (const std::string splits : {"splits 2 ", "splits 5 ", ""}) {
        const std::string line = "b1 hq2 hkv2 tq3 tk23 d4 " + splits + "f32" + values;
        EXPECT_EQ(diagnosed_of(answer, line.c_str()).says, says) << line;
    }
}

TEST(SplitWeights, ThoseThatAreDroppedAreNamed) {
    expect_named(by_splits([](double w) { return w < 1e-4 ? 0 : w; }, true),
                 "weights below 1e-4 of the largest dropped", " values logit50");
}

TEST(SplitWeights, ThoseThatAreRoundedAreNamed) {
    expect_named(by_splits([](double w) { return round_to(w, Precision::bf16); }, false),
                 "weights rounded to bfloat16, their sum not", "");
}

// Calls of few queries are parted to 32 keys though nobody asks for it.
TEST(SplitWeights, ThoseOfAKernelsOwnSplitsRefuteNothing) {
    const Answer rounded = by_splits([](double w) { return round_to(w, Precision::bf16); }, false);
    const Answer parting = [rounded](const Specification& s, const bound::Expected& truth) {
        Specification own = s;
        if (s.problem.splits == 0 && s.problem.len_q <= 4)
            own.problem.splits = std::max<std::int64_t>(1, s.problem.len_kv / 32);
        return rounded(own, truth);
    };
    for (const char* line : {"b1 hq2 hkv2 tq3 tk9 d4 f32", "b1 hq2 hkv2 tq9 tk90 d4 f32",
                             "b1 hq1 hkv1 tq2 tk33 d1 f32"})
        EXPECT_EQ(diagnosed_of(parting, line).form_of, "weights_rounded") << line;
}

}  // namespace
}  // namespace attest::diagnosis
