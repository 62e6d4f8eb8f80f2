// Subnormal numbers taken for 0: what that predicts, and where it shows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/diagnosis/actor_test.hpp"

namespace attest::diagnosis {
namespace {

// Arithmetic that flushes what goes into it and what comes out.
double flushed(double number) {
    return std::abs(number) < std::numeric_limits<float>::min() ? 0 : number;
}

RowAnswer flushed_row(const std::vector<double>& below, const std::vector<double>& values) {
    RowAnswer answer;
    for (const double each : below) answer.sum += std::exp(each);
    for (std::size_t j = 0; j < below.size(); ++j)
        answer.output =
            flushed(answer.output + flushed(std::exp(below[j]) / answer.sum * flushed(values[j])));
    return answer;
}

/// Takes no value dimension of its own.
class OneDimension : public Actor {
public:
    using Actor::Actor;
    bool supports(const Problem& p, std::string*) override { return value_dim(p) == p.dim_qk; }
    worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
        return supports(p, nullptr) ? Actor::forward(p, inputs) : refused();
    }

private:
    static worker::CallResult refused() {
        worker::CallResult result;
        result.outcome = worker::Outcome::refused;
        return result;
    }
};

// Products below the least normal number are lost in sums above it, within the bounds of any
// arithmetic that flushes: smaller values show it, of a kernel that takes one dimension alone too.
TEST(Flushed, ProductsOfNormalNumbersThatAreLostAreNamed) {
    const char* small =
        "b1 hq1 hkv1 tq1 tk2 d1 f32 no_lse q zeros k zeros v "
        "[-6.281402202166309e-38,1.8084112611921703e-38]";
    const char* line =
        "b1 hq1 hkv1 tq2 tk2 d2 f32 q zeros k zeros v "
        "[0,-6.281402202166309e-38,0,1.8084112611921703e-38]";
    OneDimension one(row_by_row(flushed_row));
    for (const char* each : {small, line}) {
        EXPECT_EQ(diagnosed_by(one, each).id, "subnormals_flushed") << each;
        EXPECT_EQ(diagnosed_of(row_by_row(flushed_row), each).id, "subnormals_flushed") << each;
    }
}

// Values that cancel leave what their sum is rounded by; subnormal ones leave nothing.
TEST(Flushed, ASumOfNothingIsExactAndOneThatCancelsIsNot) {
    const Case c = parse_case(
        "b1 hq1 hkv1 tq1 tk2 d2 f32 q zeros k zeros v "
        "[1,7.346839692639297e-40,-1,3.6734198463196485e-40]");
    const Specification s{c.problem, {}, {}, make_inputs(c)};
    const bound::Expected truth = oracle::attend(s.problem, s.dialect, s.numerics, s.inputs);
    const auto flush = std::ranges::find(deviations(), "subnormals_flushed", &Deviation::id);
    const bound::Expected own = predict(*flush, s, truth).value();
    EXPECT_EQ(own.output[0].value, 0);
    EXPECT_GT(own.output[0].bound, 1e-8);
    EXPECT_EQ(own.output[1].value, 0);
    EXPECT_EQ(own.output[1].bound, 0);
    EXPECT_GT(truth.output[1].value, 1e-40);
}

}  // namespace
}  // namespace attest::diagnosis
