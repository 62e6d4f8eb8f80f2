// Outputs of splits that are kept in a narrower format until they are merged: each term of the
// bound that they need, by kernels that lose nearly all that it allows.

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "reference/oracle/emulated_kernel.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// Two keys of equal weight in two splits, of value `first` and 0.
struct TwoSplits {
    Case tried = parse_case("b1 hq1 hkv1 tq1 tk2 d1 splits 2 f32 q zeros k zeros v zeros");
    TensorSet inputs = make_inputs(tried);
    Emulation how;
    TwoSplits(NumberFormat partials, double first) {
        inputs[Role::v].set(0, first);
        how.splits = 2;
        how.partials = partials;
    }
    bound::ExpectedElement expected(const Numerics& numerics) const {
        return attend(tried.problem, {}, numerics, inputs).output[0];
    }
    bound::Agreement agreement(const Numerics& numerics) const {
        return bound::judge(emulate(tried, {}, inputs, how).output[0], expected(numerics),
                            Precision::f32);
    }
};

TEST(partials, are_rounded_by_nearly_half_a_step) {
    const TwoSplits bf16(NumberFormat::bf16, 1 + 0x1p-8 + 0x1p-20);
    EXPECT_EQ(bf16.agreement(declared(bf16.how)), bound::Agreement::agrees);
    EXPECT_EQ(bf16.agreement({}), bound::Agreement::disagrees);
    Numerics finer = declared(bf16.how);
    finer.partials = NumberFormat::f16;
    EXPECT_EQ(bf16.agreement(finer), bound::Agreement::disagrees);
    EXPECT_LT(bf16.expected(declared(bf16.how)).bound, 0x1.1p-9);
}

TEST(partials, may_underflow) {
    const TwoSplits f16(NumberFormat::f16, 0x1.01p-25);
    EXPECT_EQ(f16.agreement(declared(f16.how)), bound::Agreement::agrees);
    EXPECT_EQ(f16.agreement({}), bound::Agreement::disagrees);
    EXPECT_LT(f16.expected(declared(f16.how)).bound, 0x1.1p-25);
}

TEST(partials, that_may_overflow_leave_nothing_to_claim) {
    for (const auto& [value, claimed] : {std::pair(30000.0, true), {40000.0, false}}) {
        const TwoSplits f16(NumberFormat::f16, value);
        EXPECT_EQ(std::isfinite(f16.expected(declared(f16.how)).bound), claimed) << value;
    }
}

}  // namespace
}  // namespace attest::oracle
