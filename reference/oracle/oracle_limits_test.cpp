// Inputs at the end of what numbers hold, and nothing at all: the oracle claims what it can prove,
// by kind only where an input has a kind, and nothing else.

#include <gtest/gtest.h>

#include <cmath>

#include "reference/oracle/certified_test.hpp"
#include "reference/oracle/collapsed.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/oracle/other_bounds.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// What every oracle there is expects.
std::vector<bound::Expected> all_of(const Problem& p, const Dialect& dialect,
                                    const TensorSet& inputs) {
    std::vector<bound::Expected> all;
    for (const Arithmetic a : arithmetics) all.push_back(attend(p, dialect, {}, inputs, a));
    all.push_back(attend(p, dialect, {}, inputs, Arithmetic::filtered));
    all.push_back(attend_probable(p, dialect, {}, inputs, 0x1p-40));
    if (auto collapsed = attend_collapsed(p, dialect, {}, inputs)) all.push_back(*collapsed);
    Numerics tiled;
    tiled.tile = 2;
    if (auto structure = attend_structure(p, dialect, tiled, inputs, bound::TileOrder::ascending))
        all.push_back(*structure);
    return all;
}

Case three_keys(Precision format) {
    Case c;
    Problem& p = c.problem;
    p.len_kv = 3;
    p.dim_qk = 2;
    p.format_q = p.format_kv = p.format_o = format;
    return c;
}

void fill(TensorSet& inputs, Role role, double value) {
    for (std::int64_t x = 0; x < inputs[role].size(); ++x) inputs[role].set(x, value);
}

/// No observation is held against a kernel.
void expect_open(const bound::ExpectedElement& e) {
    EXPECT_TRUE(std::isfinite(e.value));
    for (const double seen : {0.0, 1.0, infinite, -infinite, std::nan("")})
        EXPECT_NE(bound::judge(seen, e, Precision::f64), bound::Agreement::disagrees) << seen;
}

TEST(limits, scores_beyond_the_format_claim_nothing) {
    for (const Precision format : {Precision::f64, Precision::f32, Precision::bf16}) {
        const Case c = three_keys(format);
        TensorSet inputs = make_inputs(c);
        const double most = traits(format).max_finite;
        fill(inputs, Role::q, most);
        fill(inputs, Role::k, most);
        for (std::int64_t x = 0; x < 2; ++x) inputs[Role::k].set(x, -most);
        for (const bound::Expected& e : all_of(c.problem, {}, inputs)) {
            for (const bound::ExpectedElement& o : e.output) expect_open(o);
            for (const bound::ExpectedElement& lse : e.lse) expect_open(lse);
        }
    }
}

TEST(limits, values_at_the_end_of_the_format_claim_no_output) {
    for (const Precision format : {Precision::f64, Precision::f32}) {
        const Case c = three_keys(format);
        TensorSet inputs = make_inputs(c);
        fill(inputs, Role::v, traits(format).max_finite);
        for (const bound::Expected& e : all_of(c.problem, {}, inputs)) {
            for (const bound::ExpectedElement& o : e.output) expect_open(o);
            EXPECT_TRUE(std::isfinite(e.lse[0].value));
        }
    }
}

TEST(limits, scores_apart_by_thousands_are_one_key) {
    // The filter's exp returns 0 for the others; the answer is still certified.
    const Case c = three_keys(Precision::f32);
    TensorSet inputs = make_inputs(c);
    fill(inputs, Role::q, 64);
    fill(inputs, Role::k, -64);
    inputs[Role::k].set(2, 64);
    inputs[Role::k].set(3, 64);
    for (const bound::Expected& e : all_of(c.problem, {}, inputs))
        for (std::size_t x = 0; x < e.output.size(); ++x) {
            const double value = inputs[Role::v].get(static_cast<std::int64_t>(2 + x));
            EXPECT_LE(std::abs(e.output[x].value - value), e.output[x].error);
            EXPECT_LT(e.output[x].error, 1e-9);
        }
}

TEST(limits, lengths_of_zero_have_rows_by_the_dialect_or_none) {
    for (const EmptyRow empty : {EmptyRow::zeros, EmptyRow::nan, EmptyRow::refuse})
        for (const int which : {0, 1, 2}) {
            Case c = three_keys(Precision::f32);
            Problem& p = c.problem;
            p.want_grad = true;
            (which == 0 ? p.batch : which == 1 ? p.len_q : p.len_kv) = 0;
            const Dialect dialect{.empty_row = empty};
            const TensorSet inputs = make_inputs(c);
            for (const bound::Expected& e : all_of(p, dialect, inputs)) {
                EXPECT_EQ(e.lse.size(), which == 2 ? 1u : 0u);
                if (which != 2) continue;
                EXPECT_EQ(e.row_empty[0], 1);
                const bool zero = e.output[0].value == 0;
                EXPECT_TRUE(zero || (empty == EmptyRow::nan && std::isnan(e.output[0].value)));
                EXPECT_NE(bound::judge(0, e.output[0], Precision::f32),
                          empty == EmptyRow::zeros ? bound::Agreement::disagrees
                                                   : bound::Agreement::undecided);
            }
            const bound::ExpectedGradients g = attend_gradients(p, dialect, {}, inputs);
            EXPECT_EQ(static_cast<std::int64_t>(g.d_k.size()), p.batch * p.len_kv * 2);
        }
}

// Of scores that -1e30 has swallowed no weight is known; a mean of zeros is 0 all the same.
TEST(limits, zeros_behind_scores_that_nobody_knows_are_decided) {
    Case c = three_keys(Precision::f32);
    c.problem.mask.tensor.kind = MaskKind::additive;
    TensorSet inputs = make_inputs(c);
    fill(inputs, Role::mask, -1e30);
    for (std::int64_t key = 0; key < 3; ++key) inputs[Role::v].set(2 * key, 0);
    Numerics whole;  // no parts are merged by what they know of their scores
    whole.sum_chunk = 16;
    for (const Arithmetic a : {Arithmetic::filtered, Arithmetic::exact}) {
        const bound::Expected e = attend(c.problem, {}, whole, inputs, a);
        EXPECT_EQ(bound::judge(0, e.output[0], Precision::f32), bound::Agreement::agrees);
        EXPECT_EQ(bound::judge(1, e.output[0], Precision::f32), bound::Agreement::disagrees);
    }
}

TEST(limits, a_nan_reaches_the_same_elements_by_every_bound) {
    Case c = three_keys(Precision::f32);
    TensorSet inputs = make_inputs(c);
    inputs[Role::v].set(1, std::nan(""));  // key 0, column 1
    for (const bound::Expected& e : all_of(c.problem, {}, inputs)) {
        EXPECT_TRUE(std::isfinite(e.output[0].value));
        EXPECT_EQ(bound::judge(std::nan(""), e.output[1], Precision::f32),
                  bound::Agreement::agrees);
        EXPECT_EQ(bound::judge(0, e.output[1], Precision::f32), bound::Agreement::disagrees);
    }
}

}  // namespace
}  // namespace attest::oracle
