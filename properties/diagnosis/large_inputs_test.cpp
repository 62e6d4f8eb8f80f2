// What becomes of numbers that are not finite, or beyond what f16 holds: no case line names such
// inputs, so that they are put in by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "properties/diagnosis/fitted.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {
namespace {

/// The calls have two heads of queries that share one of keys; the number is put into key 0, or
/// its value.
std::optional<bound::Expected> predicted_of(
    const char* id, double number, Role role = Role::k,
    const char* line = "b1 hq2 hkv1 tq2 tk3 d1 f16 q ones") {
    const Case tried = parse_case(line);
    Specification s{tried.problem, {}, {}, make_inputs(tried)};
    s.inputs[role].set(0, number);
    const std::vector<Deviation> all = large_inputs_lost();
    const auto own = std::ranges::find(all, id, &Deviation::id);
    if (own == all.end()) throw std::logic_error("no such deviation");
    return predict(*own, s, oracle::attend(s.problem, s.dialect, s.numerics, s.inputs));
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(LargeInputs, ASumOfNaNIsTakenForARowWithoutKeys) {
    EXPECT_FALSE(predicted_of("nan_sum_zero", 1));
    const auto own = predicted_of("nan_sum_zero", nan);
    ASSERT_TRUE(own);
    for (const bound::ExpectedElement& e : own->output) {
        EXPECT_EQ(e.value, 0);
        EXPECT_EQ(e.bound, 0);
    }
}

TEST(LargeInputs, AKeyOfNaNHasNoWeight) {
    const auto own = predicted_of("nan_hides", nan);
    ASSERT_TRUE(own);
    for (const bound::ExpectedElement& e : own->output) EXPECT_TRUE(std::isfinite(e.value));
}

TEST(LargeInputs, AValueOfNaNIsLostWhereItsWeightUnderflows) {
    const char* far = "b1 hq2 hkv1 tq2 tk3 d1 f32 q ones k [-200,0,0]";
    const auto own = predicted_of("zero_weights_skipped", nan, Role::v, far);
    ASSERT_TRUE(own);
    for (const bound::ExpectedElement& e : own->output) EXPECT_TRUE(std::isfinite(e.value));
    EXPECT_FALSE(predicted_of("zero_weights_skipped", 1, Role::v, far));
    const char* near = "b1 hq2 hkv1 tq2 tk3 d1 f32 q ones k [-80,0,0]";
    const auto seen = predicted_of("zero_weights_skipped", nan, Role::v, near);
    ASSERT_TRUE(seen);
    for (const bound::ExpectedElement& e : seen->output) EXPECT_TRUE(std::isnan(e.value));
}

TEST(LargeInputs, ZeroForWhatF16HoldsAsInfinite) {
    const auto zero = predicted_of("f16_beyond_60000_as_zero", 65504);
    ASSERT_TRUE(zero);
    EXPECT_LT(std::abs(zero->lse[0].value), 10);  // the key's own score is 65504
    EXPECT_FALSE(predicted_of("f16_beyond_60000_as_zero", 60000));
}

}  // namespace
}  // namespace attest::diagnosis
