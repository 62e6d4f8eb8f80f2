// Features one at a time, on paper.

#include <gtest/gtest.h>

#include <cmath>

#include "reference/oracle/certified_test.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

TEST(oracle, alibi_lowers_the_score_by_slope_times_distance) {
    // Query 1 of 2 stands at key 1: distances 1 and 0.
    Problem p;
    p.len_q = p.len_kv = 2;
    p.alibi = true;
    TensorSet inputs = make_inputs({p, {}});
    for (const Role role : {Role::q, Role::k})
        for (std::int64_t x = 0; x < 2; ++x) inputs[role].set(x, 0);
    inputs[Role::alibi_slopes].set(0, 0.5);
    const bound::Expected e = attend(p, {}, {}, inputs);
    expect_certified(e.lse[1], std::log1p(std::exp(-0.5)));
}

TEST(oracle, rope_turns_each_pair_by_its_angle) {
    // One pair: q at position 1 and k at position 0 or 1, so the scores are cos(1) and cos(0).
    for (const RopeStyle style : {RopeStyle::interleaved, RopeStyle::half}) {
        Problem p;
        p.len_q = p.len_kv = 2;
        p.dim_qk = 2;
        p.dim_v = 1;
        p.scale = 1.0;
        p.rope.style = style;
        p.rope.offset = 7;
        TensorSet inputs = make_inputs({p, {}});
        for (const Role role : {Role::q, Role::k})
            for (std::int64_t x = 0; x < 4; ++x) inputs[role].set(x, x % 2 == 0 ? 1 : 0);
        for (const Arithmetic a : arithmetics)
            expect_certified(attend(p, {}, {}, inputs, a).lse[1],
                             std::log(std::exp(std::cos(1.0)) + std::exp(1.0)), 1e-15);
    }
}

TEST(oracle, rope_pairs_neighbours_or_halves_and_slows_down_by_pair) {
    // Four channels; q and k one-hot in the second pair, which turns by base^(-1/2) = 0.1 a step.
    for (const RopeStyle style : {RopeStyle::interleaved, RopeStyle::half}) {
        Problem p;
        p.len_q = p.len_kv = 2;
        p.dim_qk = 4;
        p.dim_v = 1;
        p.scale = 1.0;
        p.rope = {.style = style, .base = 100.0};
        TensorSet inputs = make_inputs({p, {}});
        const std::int64_t channel = style == RopeStyle::interleaved ? 2 : 1;
        for (const Role role : {Role::q, Role::k})
            for (std::int64_t x = 0; x < 8; ++x) inputs[role].set(x, x % 4 == channel ? 1 : 0);
        expect_certified(attend(p, {}, {}, inputs).lse[1],
                         std::log(std::exp(std::cos(0.1)) + std::exp(1.0)), 1e-15);
    }
}

TEST(oracle, query_heads_read_the_key_head_of_their_group) {
    Problem p;
    p.heads_q = 6;
    p.heads_kv = 2;
    TensorSet inputs = make_inputs({p, {}});
    inputs[Role::v].set(0, 10);
    inputs[Role::v].set(1, 20);
    const bound::Expected e = attend(p, {}, {}, inputs);
    for (std::size_t h = 0; h < 6; ++h) EXPECT_EQ(e.output[h].value, h < 3 ? 10 : 20);
}

TEST(oracle, pages_are_read_through_the_block_table) {
    Problem p;
    p.len_q = 1;
    p.len_kv = 7;
    p.dim_qk = 3;
    p.cache = {.present = true, .len = 6, .page_size = 2};
    Problem contiguous = p;
    contiguous.cache.page_size = 0;
    const bound::Expected paged = attend(p, {}, {}, make_inputs({p, {}}));
    const bound::Expected flat = attend(contiguous, {}, {}, make_inputs({contiguous, {}}));
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(paged.output[c].value, flat.output[c].value);
}

}  // namespace
}  // namespace attest::oracle
