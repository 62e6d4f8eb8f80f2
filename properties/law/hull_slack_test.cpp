// Where the box claims nothing it says so of values of zero, too.

#include "properties/law/hull_slack.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace attest::law {
namespace {

TEST(HullSlack, ClaimsNothingWhereMergedPartsMayOverflow) {
    const Problem problem = parse_problem("tq2 tk1 d1 mask additive f32");
    Numerics numerics;
    numerics.sum_chunk = 0;
    const bound::KernelModel may_split = bound::resolve(problem, numerics);
    ASSERT_TRUE(may_split.may_split);
    const HullSlack slack = hull_slack(may_split, 1, 1e30, 0);
    EXPECT_EQ(slack.relative * 0 + slack.absolute, std::numeric_limits<double>::infinity());
    numerics.sum_chunk = 64;
    const bound::KernelModel whole = bound::resolve(problem, numerics);
    EXPECT_LT(hull_slack(whole, 1, 1e30, 0).absolute, 1e-30);
}

}  // namespace
}  // namespace attest::law
