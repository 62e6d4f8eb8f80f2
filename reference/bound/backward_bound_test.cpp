// Each term of the backward bound, held by itself.

#include "reference/bound/backward_bound.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/bound/rounding.hpp"

namespace attest::bound {
namespace {

constexpr double unit = 0x1p-24;

/// Two keys of weight 1/2, dP = +-1, D = 0.
struct TwoKeys {
    std::vector<double> score{0, 0}, weight{0.5, 0.5}, magnitude{4, 4};
    std::vector<double> dp{1, -1}, dp_size{2, 2}, slope;
    RowFacts row;
    BackwardFacts back;
    KernelModel model;
    explicit TwoKeys(Precision format = Precision::f32) {
        Problem p;
        p.dim_qk = 4;
        p.len_kv = 2;
        p.format_q = p.format_kv = p.format_o = format;
        model = resolve(p, {});
        row.score = score;
        row.weight = weight;
        row.magnitude = magnitude;
        row.lse = std::log(2.0);
        row.q_max = row.k_max = 1;
        back.dp = dp;
        back.dp_size = dp_size;
        back.dim_v = 4;
    }
    BackwardRow weighed(double gradient_max = 1e30) const {
        KernelModel limited = model;
        limited.gradient_max = gradient_max;
        BackwardRow out(limited, 8, 2);
        out.weigh(row, back);
        return out;
    }
};

TEST(backward_bound, pays_for_the_stored_lse) {
    TwoKeys keys;
    const double before = keys.weighed().weight()[0];
    keys.back.lse_error = 0x1p-10;
    // P = exp(S - L) is off by that, relatively.
    EXPECT_GE(keys.weighed().weight()[0] - before, 0.5 * 0x1p-10);
    EXPECT_GE(keys.weighed().of_ds()[0], 0.5 * 0x1p-10);
}

// exp2(fma(S, log2 e, -round(L log2 e))) of S = L = -1e30 is 2 to the power of what is rounded
// there.
TEST(backward_bound, says_nothing_of_a_weight_that_may_overflow) {
    TwoKeys keys;
    const auto overflows = [&](double floor) {
        for (double& score : keys.score) score = floor;
        keys.row.max = keys.row.lse = floor;
        return keys.weighed().overflows();
    };
    EXPECT_FALSE(overflows(-65504));
    EXPECT_FALSE(overflows(-1e8));
    EXPECT_TRUE(overflows(-1e30));
}

TEST(backward_bound, pays_for_the_stored_output) {
    TwoKeys keys;
    const double before = keys.weighed().of_ds()[0];
    keys.back.d_output = 0x1p-10;
    EXPECT_GE(keys.weighed().of_ds()[0] - before, 0.5 * 0x1p-10);
}

// dS = P (dP - dO.O + dLSE): three units of dLSE, a term more in the sum of D, and a partial sum.
TEST(backward_bound, pays_for_the_gradient_of_the_lse) {
    TwoKeys keys;
    const double before = keys.weighed().of_ds()[0];
    const auto with = [&](double d, double d_lse) {
        keys.back.d = -d;
        keys.back.d_size = keys.back.d_lse = d_lse;
        return keys.weighed().of_ds()[0];
    };
    EXPECT_GE(with(0, 1) - before, 0.5 * unit * (6 + 3 + 1));
    // What is rounded may be 2^20 where the sum is 1.
    EXPECT_GE(with(0, 0x1p20) - before, 0.5 * unit * 0x1p20 * (6 + 3 + 1));
    // And no more than the sum of these, and some for products of two errors.
    EXPECT_LE(with(0, 0x1p20) - before, 0.5 * unit * 0x1p20 * (6 + 3 + 1) * 1.2);
}

TEST(backward_bound, pays_for_dp_and_for_the_sums) {
    const TwoKeys keys;
    const BackwardRow row = keys.weighed();
    EXPECT_GE(row.of_ds()[0], 0.5 * 5 * unit * 2);                     // sum of dim_v products
    EXPECT_GE(row.by_queries()[0] - row.of_dx()[0], 0.5 * 13 * unit);  // 8 queries and 5
    EXPECT_GE(row.by_keys()[0] - row.of_dx()[0], 0.5 * 7 * unit);
}

TEST(backward_bound, pays_for_rounding_p_and_ds) {
    const TwoKeys low(Precision::bf16);
    EXPECT_GE(low.weighed().weight()[0], 0.5 * 0x1p-8);
    EXPECT_GE(low.weighed().by_keys()[0], 0.5 * 0x1p-8);
    // dS that may overflow its format is no business of the proof.
    EXPECT_EQ(low.weighed(0.25).by_keys()[0], infinite);
}

// Of a bias dS itself is added up: as rounded, it may be 0 or infinite where it is not.
TEST(backward_bound, pays_for_a_ds_that_was_rounded_before_it_is_added_up) {
    const double plain = TwoKeys().weighed().of_ds()[0];
    const TwoKeys low(Precision::f16);
    const BackwardRow row = low.weighed(65504);
    EXPECT_GE(row.of_ds()[0] - plain, 0x1p-25);
    EXPECT_GE(row.of_dx()[0] - plain, 0x1p-25);
    EXPECT_LE(row.of_ds()[0] - plain, 0x1p-24 * evaluation);
    EXPECT_EQ(low.weighed(0.25).of_ds()[0], infinite);
}

TEST(backward_bound, pays_for_the_slope_of_the_cap) {
    TwoKeys keys;
    keys.slope = {0.5, 0.5};
    keys.back.slope = keys.slope;
    keys.model.softcap = 10;
    const BackwardRow row = keys.weighed();
    // The slope is wrong by two units of tanh's error and more: |dS| times that.
    EXPECT_GE(row.of_dx()[0], 0.5 * row.of_ds()[0]);
    EXPECT_GE(row.of_dx()[0] - 0.5 * row.of_ds()[0], 0.5 * 2 * 9 * unit);
}

}  // namespace
}  // namespace attest::bound
