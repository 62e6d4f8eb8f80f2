// What long contexts rest on: rows instead of all of them, and a bound that knows the depth of the
// sums and how often the maximum rises.

#include "reference/oracle/long_context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/oracle/emulated_kernel.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

Case long_case(ValueKind kind, std::int64_t len_kv) {
    Case c;
    Problem& p = c.problem;
    p.heads_q = 2;
    p.len_q = 20;
    p.len_kv = len_kv;
    p.dim_qk = 8;
    p.mask.causal = true;
    c.values.kind = kind;
    return c;
}

TEST(long_context, is_all_rows_where_they_are_affordable) {
    const Case c = long_case(ValueKind::normal, 50);
    const TensorSet inputs = make_inputs(c);
    const bound::Expected every = attend(c.problem, {}, {}, inputs);
    const bound::Expected seen = attend_affordable(c.problem, {}, {}, inputs, 40 * 50 * 16, 1);
    EXPECT_TRUE(seen.rows.empty());
    EXPECT_EQ(seen.output.size(), every.output.size());
}

TEST(long_context, is_a_sample_beyond) {
    const Case c = long_case(ValueKind::normal, 300);  // more keys than classes
    const TensorSet inputs = make_inputs(c);
    const bound::Expected every = attend(c.problem, {}, {}, inputs);
    const bound::Expected seen = attend_affordable(c.problem, {}, {}, inputs, 40 * 300 * 16 - 1, 1);
    ASSERT_GE(seen.rows.size(), 8u);
    ASSERT_LE(seen.rows.size(), 16u);
    EXPECT_EQ(seen.rows.front(), 0);
    EXPECT_EQ(seen.rows.back(), 39);
    ASSERT_EQ(seen.output.size(), seen.rows.size() * 8);
    for (std::size_t n = 0; n < seen.rows.size(); ++n)
        for (std::size_t x = 0; x < 8; ++x) {
            const std::size_t at = static_cast<std::size_t>(seen.rows[n]) * 8 + x;
            const bound::ExpectedElement &a = every.output[at], &b = seen.output[n * 8 + x];
            EXPECT_LE(std::abs(a.value - b.value), a.error + b.error);
            EXPECT_NEAR(a.bound, b.bound, 1e-4 * a.bound);
        }
    const bound::Expected other = attend_affordable(c.problem, {}, {}, inputs, 1, 2);
    EXPECT_NE(other.rows, seen.rows);
}

TEST(long_context, is_every_row_where_keys_are_copies) {
    const Case c = long_case(ValueKind::ties, 3000);
    const bound::Expected seen = attend_affordable(c.problem, {}, {}, make_inputs(c), 1, 1);
    EXPECT_TRUE(seen.rows.empty());
    EXPECT_EQ(seen.output.size(), 2u * 20 * 8);
}

/// The bound of the middle element of the last row.
double bound_of(const Case& c, const Numerics& numerics) {
    const std::int64_t last = c.problem.heads_q * c.problem.len_q - 1;
    const bound::Expected e =
        attend_rows(c.problem, {}, numerics, make_inputs(c), {last}, Arithmetic::filtered);
    return e.output[4].bound;
}

TEST(long_context, what_a_kernel_declares_of_its_sums_narrows_the_bound) {
    const Case c = long_case(ValueKind::normal, 1 << 16);
    Numerics any, tiled, chunked;
    any.weights = tiled.weights = chunked.weights = NumberFormat::f32;
    tiled.tile = chunked.tile = 64;
    chunked.sum_chunk = 64;
    // Any order: the sum's depth is n, and so is the count of rescalings. Tiles: 1023 rescalings.
    // Chunks: the depth is 64 + 1024, and the maximum of normal scores rises some ten times.
    const double least = bound_of(c, chunked), middle = bound_of(c, tiled), most = bound_of(c, any);
    EXPECT_LT(middle, 0.6 * most);
    EXPECT_LT(least, 0.05 * middle);
    std::printf("bound of 65536 keys: any order %.2g, tiles %.2g, chunks %.2g\n", most, middle,
                least);
}

TEST(long_context, rises_are_counted_from_both_ends) {
    // Ascending scores rise at every key; a kernel may take them from the last as well.
    Numerics any, tiled;
    any.weights = tiled.weights = NumberFormat::f32;
    any.sum_chunk = tiled.sum_chunk = 1 << 20;
    tiled.tile = 16;
    const Case up = long_case(ValueKind::ascending, 4096),
               down = long_case(ValueKind::descending, 4096);
    Case flat = long_case(ValueKind::const_v, 4096);
    for (const Case& c : {up, down}) {
        const double tiles = bound_of(c, tiled);
        Numerics one = tiled;
        one.tile = 4096;
        EXPECT_GT(tiles, bound_of(c, one));  // 256 rescalings against one
        Numerics shorter = one;
        shorter.tile = 4095;  // wherever tiles begin, two are met either way
        EXPECT_EQ(bound_of(c, one), bound_of(c, shorter));
    }
    EXPECT_LE(bound_of(flat, tiled), bound_of(flat, any));
}

TEST(long_context, no_correct_kernel_violates_the_declared_depth) {
    std::int64_t claimed = 0;
    for (const ValueKind kind : {ValueKind::normal, ValueKind::ascending, ValueKind::descending,
                                 ValueKind::flat, ValueKind::uniform, ValueKind::ties})
        for (const bool backwards : {false, true}) {
            Case c = long_case(kind, 3000);
            c.problem.len_q = 3;
            c.values.seed = backwards ? 1 : 2;
            Emulation how;
            how.tile = 16;
            how.sum_tiles = true;
            how.backwards = backwards;
            const TensorSet inputs = make_inputs(c);
            const Observed seen = emulate(c, {}, inputs, how);
            const bound::Expected e = attend(c.problem, {}, declared(how), inputs);
            for (std::size_t x = 0; x < seen.output.size(); ++x) {
                if (!(e.output[x].bound < INFINITY)) continue;
                ++claimed;
                ASSERT_NE(bound::judge(seen.output[x], e.output[x], Precision::f32),
                          bound::Agreement::disagrees)
                    << static_cast<int>(kind) << " " << x;
            }
        }
    EXPECT_GT(claimed, 500);
}

TEST(long_context, a_lost_rescaling_shows_within_the_declared_depth) {
    Case c = long_case(ValueKind::ascending, 3000);
    Emulation how;
    how.tile = 32;
    how.sum_tiles = true;
    const TensorSet inputs = make_inputs(c);
    const Observed seen = emulate(c, {}, inputs, how, EmulatedDefect::rescale_lost);
    const bound::Expected e = attend(c.problem, {}, declared(how), inputs);
    std::int64_t violated = 0;
    for (std::size_t x = 0; x < seen.output.size(); ++x)
        violated += bound::judge(seen.output[x], e.output[x], Precision::f32) ==
                    bound::Agreement::disagrees;
    EXPECT_GT(violated, 0);
}

}  // namespace
}  // namespace attest::oracle
