#include "properties/diagnosis/own_temperature.hpp"

#include <gtest/gtest.h>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {
namespace {

// Small, and another in each call: what sums in bf16 may be off by is far more.
TEST(OwnTemperature, ScalesOfCallsAreNoErrorsOfAStep) {
    const auto answer = [](const Specification& s, const bound::Expected&) {
        const Problem& p = s.problem;
        const double factor =
            1 + 0.004 * static_cast<double>(1 + (3 * p.len_kv + p.len_q + p.dim_qk) % 5);
        const Specification other = with_scale(s, effective_scale(p) * factor);
        return oracle::attend(other.problem, other.dialect, other.numerics, other.inputs);
    };
    const Diagnosis d = diagnosed_of(answer, "b1 hq2 hkv2 tq5 tk9 d8 f32");
    EXPECT_EQ(d.id, "temperature_of_call") << d.says;
    EXPECT_TRUE(d.says.starts_with("in these calls scores 1.004 to 1.02 times")) << d.says;
}

}  // namespace
}  // namespace attest::diagnosis
