// A sum over values kept in a narrower format, by an online softmax written out here.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "properties/diagnosis/actor_test.hpp"

namespace attest::diagnosis {
namespace {

struct RoundedSum {
    const char* id;
    Precision format;
    std::size_t tile;
    bool rescaled, products;  ///< rounded too
};

Answer summing(const RoundedSum& how) {
    return row_by_row([how](const std::vector<double>& below, const std::vector<double>& values) {
        const auto kept = [&](double x, bool too) { return too ? round_to(x, how.format) : x; };
        RowAnswer answer;
        double most = -std::numeric_limits<double>::infinity();
        for (std::size_t from = 0; from < below.size(); from += how.tile) {
            const std::size_t to = std::min(from + how.tile, below.size());
            const double before = most;
            for (std::size_t j = from; j < to; ++j) most = std::max(most, below[j]);
            double products = 0;
            answer.sum *= std::exp(before - most);
            for (std::size_t j = from; j < to; ++j) {
                answer.sum += std::exp(below[j] - most);
                products += std::exp(below[j] - most) * values[j];
            }
            const double rest = kept(answer.output * std::exp(before - most), how.rescaled);
            answer.output = kept(rest + kept(products, how.products), true);
        }
        answer.output /= answer.sum;
        return answer;
    });
}

class RoundedSums : public testing::TestWithParam<RoundedSum> {};

TEST_P(RoundedSums, AreNamedByHowOftenTheyAre) {
    const Diagnosis d = diagnosed_of(summing(GetParam()), "b1 hq2 hkv2 tq3 tk90 d4 f32");
    EXPECT_EQ(d.id, GetParam().id) << d.says;
}

constexpr RoundedSum sums[] = {
    {"value_sum_rounded_f16_once", Precision::f16, 1000, false, false},
    {"value_sum_rounded_f16_1", Precision::f16, 1, false, false},
    {"value_sum_rounded_f16_1_rescaled", Precision::f16, 1, true, false},
    {"value_sum_rounded_f16_1_products", Precision::f16, 1, true, true},
    {"value_sum_rounded_bf16_16", Precision::bf16, 16, false, false},
    {"value_sum_rounded_bf16_16_rescaled", Precision::bf16, 16, true, false},
    {"value_sum_rounded_bf16_32_products", Precision::bf16, 32, true, true},
};

INSTANTIATE_TEST_SUITE_P(Each, RoundedSums, testing::ValuesIn(sums),
                         [](const auto& test) { return std::string(test.param.id); });

}  // namespace
}  // namespace attest::diagnosis
