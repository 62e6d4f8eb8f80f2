// The class-collapsed oracle against the plain one, and at the length it is for.

#include "reference/oracle/collapsed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

Case long_case(std::int64_t len_q, std::int64_t len_kv) {
    Case c;
    Problem& p = c.problem;
    p.heads_q = 2;
    p.len_q = len_q;
    p.len_kv = len_kv;
    p.dim_qk = 16;
    p.dim_v = 8;
    p.mask.causal = true;
    return c;
}

void expect_same(const Problem& p, const Dialect& dialect, const TensorSet& inputs) {
    const bound::Expected plain = attend(p, dialect, {}, inputs);
    const auto collapsed = attend_collapsed(p, dialect, {}, inputs);
    ASSERT_TRUE(collapsed.has_value());
    for (std::size_t x = 0; x < plain.output.size(); ++x) {
        const bound::ExpectedElement &a = plain.output[x], &b = collapsed->output[x];
        ASSERT_LE(std::abs(a.value - b.value), a.error + b.error) << x;
        if (b.bound == 0 || !std::isfinite(b.bound)) continue;
        // Cauchy-Schwarz may lose, but not gain; the hull is not known class by class.
        ASSERT_GE(b.bound, 0.999 * a.bound) << x;
        ASSERT_LE(b.bound, 3 * a.bound) << x;
    }
    for (std::size_t x = 0; x < plain.lse.size(); ++x) {
        if (!std::isfinite(plain.lse[x].value)) continue;
        ASSERT_LE(std::abs(plain.lse[x].value - collapsed->lse[x].value),
                  plain.lse[x].error + collapsed->lse[x].error);
        ASSERT_NEAR(plain.lse[x].bound / collapsed->lse[x].bound, 1, 0x1p-20);
    }
}

TEST(collapsed, agrees_with_the_plain_oracle) {
    for (const bool causal : {true, false})
        for (const bool sink : {true, false}) {
            Case c = long_case(300, 300);
            c.problem.mask.causal = causal;
            c.problem.sink = sink;
            c.problem.softcap = sink ? 20 : 0;
            TensorSet inputs = make_inputs(c);
            collapse_keys(inputs, 12, 3);
            expect_same(c.problem, {.lse_base = sink ? LseBase::two : LseBase::e}, inputs);
        }
}

TEST(collapsed, declines_what_it_does_not_cover) {
    Case c = long_case(40, 40);
    TensorSet inputs = make_inputs(c);
    EXPECT_FALSE(attend_collapsed(c.problem, {}, {}, inputs, 12));  // 40 distinct keys
    collapse_keys(inputs, 12, 3);
    EXPECT_TRUE(attend_collapsed(c.problem, {}, {}, inputs, 12));
    c.problem.mask.window.left = 3;
    EXPECT_FALSE(attend_collapsed(c.problem, {}, {}, inputs, 12));
}

TEST(collapsed, a_dropped_key_shows_at_any_length) {
    // The truth with one value moved to zero differs by more than both errors in every later row.
    Case c = long_case(2048, 2048);
    TensorSet inputs = make_inputs(c);
    collapse_keys(inputs, 16, 3);
    const auto before = attend_collapsed(c.problem, {}, {}, inputs);
    inputs[Role::v].put(0, 0, 1000, 3, 0);
    const auto after = attend_collapsed(c.problem, {}, {}, inputs);
    for (std::int64_t i = 0; i < 2048; ++i) {
        const std::size_t x = static_cast<std::size_t>(i * 8 + 3);
        const bound::ExpectedElement &a = before->output[x], &b = after->output[x];
        const bool differs = std::abs(a.value - b.value) > a.error + b.error;
        ASSERT_EQ(differs, i >= 1000) << i;
    }
}

}  // namespace
}  // namespace attest::oracle
