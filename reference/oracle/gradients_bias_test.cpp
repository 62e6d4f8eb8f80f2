// The gradients of what is added to scores, where a backward adds up dS as it rounded it.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "reference/oracle/emulated_backward.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// Flat scores, one value of 1 and the smallest dO: no dS is half of the smallest number of f16.
Case with_a_vanishing_ds(const char* line, TensorSet& inputs) {
    const Case c = parse_case(line);
    inputs = make_inputs(c);
    for (const Role role : {Role::mask, Role::alibi_slopes})
        for (std::int64_t at = 0; inputs.has(role) && at < inputs[role].size(); ++at)
            inputs[role].set(at, 0);
    for (std::int64_t at = 0; at < inputs[Role::v].size(); ++at) inputs[Role::v].set(at, at == 0);
    for (std::int64_t at = 0; at < inputs[Role::d_o].size(); ++at)
        inputs[Role::d_o].set(at, 0x1p-24);
    return c;
}

// What was rounded for the products is a sum of zeros then, where the exact one is not small.
TEST(gradients, of_a_bias_may_add_up_what_underflowed) {
    Emulation how;
    how.round_weights = how.rounded_ds = true;
    for (const char* line :
         {"b1 hq1 hkv1 tq64 tk2 d1 mask additive shared queries f16 grad q zeros k zeros",
          "b1 hq1 hkv1 tq8 tk8 d1 alibi f16 grad q zeros k zeros"}) {
        TensorSet inputs;
        const Case c = with_a_vanishing_ds(line, inputs);
        const Backward seen = emulate_backward(c, {}, inputs, how);
        const auto g = attend_gradients(c.problem, {}, declared(how), inputs);
        // Who rounds no dS loses none.
        const auto unrounded = attend_gradients(c.problem, {}, declared({}), inputs);
        const bool mask = !seen.d_mask.empty();
        const std::vector<double>& sums = mask ? seen.d_mask : seen.d_slopes;
        const Precision format = mask ? Precision::f16 : Precision::f32;
        for (std::size_t at = 0; at < sums.size(); ++at) {
            const auto judged = [&](const bound::ExpectedGradients& of) {
                return bound::judge(sums[at], (mask ? of.d_mask : of.d_slopes)[at], format);
            };
            EXPECT_EQ(judged(g), bound::Agreement::agrees) << line << " " << at;
            EXPECT_EQ(judged(unrounded), bound::Agreement::disagrees) << line << " " << at;
        }
        EXPECT_EQ(sums.size(), mask ? 2u : 1u);
    }
}

// n terms that are added one after the other lose up to (n - 1) 2^-24 of the sum of their sizes,
// whatever each term loses; the terms are those of a mask that nothing shares.
TEST(gradients, of_a_bias_that_all_share_may_lose_what_its_sum_loses) {
    const std::string line = "b1 hq1 hkv1 tq64 tk64 d1 mask additive";
    const Case shared = parse_case(line + " shared queries,keys f32 grad q zeros k zeros");
    const Case alone = parse_case(line + " f32 grad q zeros k zeros");
    TensorSet of_shared = make_inputs(shared), of_alone = make_inputs(alone);
    of_shared[Role::mask].set(0, 0);
    for (std::int64_t at = 0; at < of_alone[Role::mask].size(); ++at)
        of_alone[Role::mask].set(at, 0);
    const auto sum = attend_gradients(shared.problem, {}, declared({}), of_shared).d_mask;
    const auto terms = attend_gradients(alone.problem, {}, declared({}), of_alone).d_mask;
    ASSERT_EQ(sum.size(), 1u);
    double value = 0, size = 0;  // 4096 additions here and there: 2^-40 of it
    for (const bound::ExpectedElement& term : terms) {
        value += term.value;
        size += std::abs(term.value);
    }
    EXPECT_LE(std::abs(sum[0].value - value), sum[0].error + 0x1p-40 * size);
    EXPECT_GE(sum[0].bound, static_cast<double>(terms.size() - 1) * 0x1p-24 * size);
}

}  // namespace
}  // namespace attest::oracle
