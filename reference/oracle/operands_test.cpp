// What a unit that multiplies matrices makes of its operands: each term of the bounds that it
// needs, by kernels that lose nearly all that it allows.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/oracle/emulated_backward.hpp"
#include "reference/oracle/gradients.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

// Just above half of the way between two numbers of bf16 next to 1: rounded up by nearly 2^-8.
constexpr double above_half = 1 + 0x1p-8 + 0x1p-20;

struct Filled {
    Case tried;
    TensorSet inputs;
    Emulation how;
    Filled(const std::string& line, Operands operands) : tried(parse_case(line)) {
        inputs = make_inputs(tried);
        how.operands = operands;
    }
    void fill(Role role, double first, double others) {
        Tensor& t = inputs[role];
        for (std::int64_t n = 0; n < t.size(); ++n) t.set(n, n == 0 ? first : others);
    }
};

/// The first output or gradient that is not within its bound is told; whether all are claimed.
bool claims_all(const std::vector<double>& seen, const std::vector<bound::ExpectedElement>& own,
                Precision format, const char* what) {
    bool all = true;
    for (std::size_t n = 0; n < seen.size(); ++n) {
        EXPECT_NE(bound::judge(seen[n], own[n], format), bound::Agreement::disagrees)
            << what << "[" << n << "] " << seen[n] << " expected " << own[n].value << " bound "
            << own[n].bound;
        all = all && std::isfinite(own[n].bound);
    }
    return all;
}

bool forward_claimed(const Filled& f) {
    const Problem& p = f.tried.problem;
    const bound::Expected own = attend(p, {}, declared(f.how), f.inputs);
    const Observed seen = emulate(f.tried, {}, f.inputs, f.how);
    const bool lse = claims_all(seen.lse, own.lse, Precision::f32, "LSE");
    return claims_all(seen.output, own.output, p.format_o, "O") && lse;
}

bool backward_claimed(const Filled& f) {
    const Problem& p = f.tried.problem;
    const bound::ExpectedGradients own = attend_gradients(p, {}, declared(f.how), f.inputs);
    const Backward seen = emulate_backward(f.tried, {}, f.inputs, f.how);
    const bool q = claims_all(seen.d_q, own.d_q, p.format_q, "dQ");
    const bool k = claims_all(seen.d_k, own.d_k, p.format_kv, "dK");
    return claims_all(seen.d_v, own.d_v, p.format_kv, "dV") && q && k;
}

TEST(operands, of_a_score_may_underflow) {
    Filled f("b1 hq1 hkv1 tq1 tk2 d1 scale 32 f32", Operands::f16);
    f.fill(Role::q, 1000, 1000);
    f.fill(Role::k, 0x1.01p-25, 0);  // to 2^-24
    EXPECT_TRUE(forward_claimed(f));
    f.fill(Role::q, 0x1.01p-25, 0);
    f.fill(Role::k, 1000, 0);
    EXPECT_TRUE(forward_claimed(f));
}

TEST(operands, of_an_output_may_underflow) {
    Filled f("b1 hq1 hkv1 tq1 tk2 d1 f32 q zeros", Operands::f16);
    f.fill(Role::v, 0x1.01p-25, 0x1.01p-25);
    EXPECT_TRUE(forward_claimed(f));
}

// f16 ends at 65504.
TEST(operands, that_may_overflow_leave_nothing_to_claim) {
    for (const Role role : {Role::q, Role::k, Role::v}) {
        Filled f("b1 hq1 hkv1 tq1 tk2 d1 scale 1 f32 q zeros k zeros v zeros", Operands::f16);
        f.fill(role, 60000, 0);
        EXPECT_EQ(forward_claimed(f), role == Role::v) << name(role);  // q times 1.45: log2(e)
        f.fill(role, 70000, 0);
        EXPECT_FALSE(forward_claimed(f)) << name(role);
    }
}

// 1/13 in f16 lies just above half of the way between two numbers of bf16, as the value does.
TEST(operands, a_weight_is_rounded_twice_where_they_are_coarser_than_it) {
    Filled f("b1 hq1 hkv1 tq1 tk13 d1 f16 q zeros", Operands::bf16);
    f.how.round_weights = f.how.normalise_first = true;
    const double value = 1 + 0x1p-8 + 0x1p-10;
    f.fill(Role::v, value, value);
    EXPECT_TRUE(forward_claimed(f));
}

// Numbers of f16 and bf16 are ones of TF32.
TEST(operands, that_hold_the_inputs_cost_the_values_nothing) {
    for (const char* format : {"f16", "bf16"}) {
        Filled f(std::string("b1 hq1 hkv1 tq1 tk4 d1 ") + format + " q zeros k zeros v ones",
                 Operands::tf32);
        const Problem& p = f.tried.problem;
        Numerics own = declared(f.how);
        own.weights = NumberFormat::same;
        const double fed = attend(p, {}, own, f.inputs).output[0].bound;
        own.operands = Operands::unrounded;
        EXPECT_LE(fed, attend(p, {}, own, f.inputs).output[0].bound) << format;
    }
}

// Queries of 0: P = 1/2, D = 0 of two opposite values, and dQ is a sum of products of dO, v, dS and
// k, each rounded up by nearly all it can be.
TEST(operands, each_of_the_four_of_dq_is_rounded) {
    Filled f("b1 hq1 hkv1 tq1 tk2 d1 scale 1 f32 grad q zeros", Operands::bf16);
    const double value = 1 + 8.5 * 0x1p-7 + 0x1p-20, key = above_half;
    f.fill(Role::d_o, 1 + 7.5 * 0x1p-7 + 0x1p-20, 0);
    f.fill(Role::v, value, -value);
    f.fill(Role::k, key, -key);
    EXPECT_TRUE(backward_claimed(f));
}

TEST(operands, of_gradients_may_underflow) {
    for (const auto& [d_o, key] : {std::pair(0x1.01p-25, 1.0), {1.0, 0x1.01p-25}}) {
        Filled f("b1 hq1 hkv1 tq1 tk2 d1 scale 1 f32 grad q zeros", Operands::f16);
        f.fill(Role::d_o, d_o, 0);
        f.fill(Role::v, 1000, -1000);
        f.fill(Role::k, key, -key);
        EXPECT_TRUE(backward_claimed(f)) << d_o << " " << key;
    }
}

TEST(operands, of_gradients_that_may_overflow_leave_nothing_to_claim) {
    for (const auto& [d_o, value, claimed] :
         {std::tuple(100.0, 400.0, true), {300.0, 1000.0, false}, {70000.0, 1e-3, false}}) {
        Filled f("b1 hq1 hkv1 tq1 tk2 d1 scale 1 f32 grad q zeros", Operands::f16);
        f.fill(Role::d_o, d_o, 0);
        f.fill(Role::v, value, -value);
        f.fill(Role::k, 1, -1);
        EXPECT_EQ(backward_claimed(f), claimed) << d_o;
    }
}

// dK and dV of two heads, equal, each just above half of the way between two numbers of bf16; or
// below its smallest, or above its largest number, of f16.
TEST(operands, gradients_of_heads_are_rounded_before_they_are_added_up) {
    struct {
        NumberFormat format;
        double d_o;
        bool claimed;
    } const tried[] = {{NumberFormat::bf16, above_half, true},
                       {NumberFormat::f16, 0x1.01p-25, true},
                       {NumberFormat::f16, 70000, false}};
    for (const auto& [format, d_o, claimed] : tried) {
        Filled f("b1 hq2 hkv1 tq1 tk1 d1 scale 1 f32 grad q zeros", Operands::unrounded);
        f.fill(Role::d_o, d_o, d_o);
        f.how.gradient_heads = format;
        EXPECT_EQ(backward_claimed(f), claimed) << d_o;
        const Backward seen = emulate_backward(f.tried, {}, f.inputs, f.how);
        const auto own = attend_gradients(f.tried.problem, {}, declared({}), f.inputs);
        EXPECT_EQ(bound::judge(seen.d_v[0], own.d_v[0], Precision::f32),
                  bound::Agreement::disagrees);
    }
}

TEST(operands, tf32_is_made_by_rounding_or_by_cutting_off) {
    EXPECT_EQ(to_tf32(1 + 0x1p-10, true), 1 + 0x1p-10);
    EXPECT_EQ(to_tf32(1 + 0x1.8p-11, false), 1 + 0x1p-10);
    EXPECT_EQ(to_tf32(-1 - 0x1.8p-11, true), -1);
    EXPECT_EQ(to_tf32(1 + 0x1p-11, false), 1 + 0x1p-10);  // a tie, away from zero
    EXPECT_EQ(to_tf32(0x1.8p-136, true), 0x1p-136);       // multiples of 2^-136 below 2^-126
    EXPECT_EQ(to_tf32(0x1p-137, true), 0);
    EXPECT_EQ(to_tf32(infinite, true), infinite);
}

}  // namespace
}  // namespace attest::oracle
