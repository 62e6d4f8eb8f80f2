// The bound's own behaviour: what it must grow with, where it must refuse to claim anything. That
// no correct kernel violates it is tested beside the oracle (oracle_kernel_test.cpp).

#include "reference/bound/forward_bound.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/bound/rounding.hpp"

namespace attest::bound {
namespace {

TEST(chain_error, is_n_u_to_first_order_and_claims_nothing_past_a_half) {
    EXPECT_DOUBLE_EQ(chain_error(10, 0x1p-24), 10 * 0x1p-24 / (1 - 10 * 0x1p-24));
    EXPECT_EQ(chain_error(0x1p23, 0x1p-24), infinite);
    EXPECT_EQ(chain_error(infinite, 0x1p-24), infinite);
}

TEST(resolve, raises_the_accumulator_to_what_the_inputs_need) {
    Problem p;
    Numerics n;
    n.accumulate = NumberFormat::bf16;
    p.format_q = p.format_kv = p.format_o = Precision::bf16;
    EXPECT_EQ(resolve(p, n).ua, 0x1p-8);
    EXPECT_EQ(resolve(p, n).up, 0);
    EXPECT_EQ(resolve(p, {}).ua, 0x1p-24);
    EXPECT_EQ(resolve(p, {}).up, 0x1p-8);
    p.format_q = p.format_kv = p.format_o = Precision::f64;
    EXPECT_EQ(resolve(p, n).ua, 0x1p-53);
    EXPECT_EQ(resolve(p, n).up, 0);
    p.format_q = p.format_kv = p.format_o = Precision::f32;
    EXPECT_EQ(resolve(p, {}).up, 0);
    EXPECT_EQ(resolve(p, {}).exp_error, 4 * 0x1p-24);
    EXPECT_EQ(resolve(p, {}).oma, 0x1p-150);
    EXPECT_EQ(resolve(p, {.flush_subnormals = true}).oma, 0x1p-126);
}

/// n equal keys of score 0 and value 1 in one column, seen with 8 channels of magnitude 1.
struct Equal {
    std::vector<double> score, weight, magnitude;
    RowFacts facts;
    explicit Equal(std::size_t n)
        : score(n, 0.0), weight(n, 1.0 / static_cast<double>(n)), magnitude(n, 8.0) {
        facts.score = score;
        facts.weight = weight;
        facts.magnitude = magnitude;
        facts.lse = std::log(static_cast<double>(n));
        facts.q_max = facts.k_max = 1;
    }
    KernelModel model(Precision format) const {
        Problem p;
        p.dim_qk = 8;
        p.len_kv = static_cast<std::int64_t>(score.size());
        p.format_q = p.format_kv = p.format_o = format;
        return resolve(p, {});
    }
    /// The bound of the one column; the values are `low` and `high` in turn.
    double bound(const KernelModel& m, double low, double high) const {
        RowBound row(m);
        row.weigh(facts);
        const double mean = (low + high) / 2;
        ColumnSums sums;
        sums.low = low;
        sums.high = high;
        for (std::size_t j = 0; j < score.size(); ++j) {
            const double v = j % 2 == 0 ? low : high;
            sums.spread += row.centred()[j] * std::abs(v - mean);
            sums.plain += row.plain()[j] * std::abs(v);
            sums.value_total += std::abs(v);
        }
        return row.output(mean, sums).value();
    }
};

TEST(row_bound, is_centred) {
    // Values that agree cannot be told apart by a wrong weight: only sums and P's rounding remain.
    const Equal keys(64);
    const KernelModel m = keys.model(Precision::f32);
    EXPECT_LT(keys.bound(m, 1, 1), 0.8 * keys.bound(m, -1, 1));
    EXPECT_LT(keys.bound(m, 1, 1), 1000 * 0x1p-24);
}

TEST(row_bound, grows_with_the_unit_of_the_format) {
    const Equal keys(16);
    const double f64 = keys.bound(keys.model(Precision::f64), -1, 1);
    const double f32 = keys.bound(keys.model(Precision::f32), -1, 1);
    const double bf16 = keys.bound(keys.model(Precision::bf16), -1, 1);
    EXPECT_NEAR(f32 / f64, 0x1p29, 0x1p20);
    EXPECT_GT(bf16, 0x1p-8);
    EXPECT_LT(bf16, 0x1p-6);
}

TEST(row_bound, never_leaves_the_hull_by_more_than_roundings) {
    Equal keys(16);
    keys.facts.max = 0;
    for (double& a : keys.magnitude) a = 1e9;  // the weights are unknown altogether
    const double bound = keys.bound(keys.model(Precision::f32), -1, 3);
    EXPECT_GT(bound, 2.0);
    EXPECT_LT(bound, 2.001);
}

TEST(row_bound, claims_nothing_where_the_kernel_may_overflow) {
    Equal keys(16);
    for (double& a : keys.magnitude) a = 1e38;
    keys.facts.q_max = keys.facts.k_max = 1e19;
    EXPECT_EQ(keys.bound(keys.model(Precision::f32), -1, 1), infinite);
    Equal large(16);
    EXPECT_EQ(large.bound(large.model(Precision::f32), -3e38, 3e38), infinite);
}

TEST(row_bound, is_a_number_where_nothing_is_claimed) {
    // The output is stored as it is rounded, a unit of zero: infinity times that is none.
    Equal keys(16);
    for (double& a : keys.magnitude) a = 1e9;  // the weights are unknown altogether
    RowBound row(keys.model(Precision::f32));
    row.weigh(keys.facts);
    const std::vector<double> ones(11, 1.0);
    std::vector<double> bounds(11);
    row.outputs(11, ones.data(), {ones.data(), ones.data(), ones.data()}, bounds.data());
    for (const double bound : bounds) EXPECT_EQ(bound, infinite);
}

TEST(row_bound, lse_bound_is_a_few_units_for_one_key) {
    const Equal one(1);
    RowBound row(one.model(Precision::f32));
    row.weigh(one.facts);
    EXPECT_GT(row.lse().value(), 8 * 0x1p-24);
    EXPECT_LT(row.lse().value(), 1000 * 0x1p-24);
    EXPECT_GT(row.lse_base_two().value(), 1.44 * row.lse().value());
}

TEST(row_bound, the_mean_of_centred_keys_costs_the_lse_one_product) {
    // Four times the query, four times the error: not its square.
    Equal keys(16);
    KernelModel m = keys.model(Precision::bf16);
    m.centred_keys = m.coarse_steps = true;
    std::vector<double> bounds;
    for (const double q : {0.25, 1.0}) {
        for (double& a : keys.magnitude) a = 8 * q;
        keys.facts.q_max = q;
        RowBound row(m);
        row.weigh(keys.facts);
        bounds.push_back(row.lse().value());
    }
    EXPECT_GT(bounds[1] / bounds[0], 3);
    EXPECT_LT(bounds[1] / bounds[0], 5);
    // One for the scores and one for the mean, each of keys rounded to bf16; all else is less.
    const double product = m.up * (8 + m.scale * 8);
    EXPECT_GT(bounds[1], 2 * product);
    EXPECT_LT(bounds[1], 3 * product);
}

TEST(row_bound, a_sink_beside_centred_keys_is_off_by_the_product_with_their_mean) {
    Equal keys(16);  // the last is the sink
    keys.facts.sink = true;
    keys.magnitude.back() = 0;
    KernelModel m = keys.model(Precision::f32);
    const auto of_sink = [&] {
        RowBound row(m);
        row.weigh(keys.facts);
        return row.centred().back();
    };
    const double plain = of_sink();
    m.centred_keys = m.coarse_steps = true;
    const double product = chain_error(8, m.ua) * m.scale * 8;
    EXPECT_GT(of_sink(), plain + keys.weight.back() * product);
}

// Eight lanes that are merged by their log-sum-exps are no splits that a problem asks for.
TEST(KernelModel, PartsMayBeMergedUnlessTilesOrSumsAreDeclared) {
    Problem p;
    const auto may_split = [&p](std::int64_t splits, const Numerics& numerics) {
        p.splits = splits;
        return resolve(p, numerics).may_split;
    };
    for (const std::int64_t splits : {0, 1, 2}) EXPECT_TRUE(may_split(splits, {}));
    EXPECT_TRUE(may_split(0, {.tile = 64}));
    EXPECT_FALSE(may_split(1, {.tile = 64}));
    for (const std::int64_t splits : {0, 1}) EXPECT_FALSE(may_split(splits, {.sum_chunk = 64}));
    EXPECT_TRUE(may_split(2, {.tile = 64, .sum_chunk = 64}));
}

}  // namespace
}  // namespace attest::bound
