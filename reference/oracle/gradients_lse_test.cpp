// The gradient of the log-sum-exp, where it is known by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/oracle/gradients.hpp"
#include "reference/oracle/random_problem.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// One query that sees n keys of score 0, or a sink alone: values 0, so that dO adds nothing.
RandomCase of_lse_alone(std::int64_t keys, bool sink, TensorSet& inputs) {
    RandomCase c;
    Problem& p = c.tried.problem;
    p.len_kv = std::max<std::int64_t>(keys, 1);
    p.sink = sink;
    p.want_grad = p.lse_grad = true;
    p.mask.lens_kv = {keys};
    p.format_q = p.format_kv = p.format_o = Precision::f64;
    inputs = make_inputs(c.tried);
    inputs[Role::q].set(0, 1);
    for (std::int64_t j = 0; j < p.len_kv; ++j) inputs[Role::k].set(j, 0);
    for (std::int64_t j = 0; j < p.len_kv; ++j) inputs[Role::v].set(j, 0);
    inputs[Role::d_lse].set(0, 3);
    if (sink) inputs[Role::sinks].set(0, 0);
    return c;
}

// LSE = log(sum exp S) has the weights for derivatives: of two keys of score 0, 1/2 each, beside a
// sink 1/3; in base 2 they are over log(2).
TEST(gradients, of_the_lse_are_the_weights) {
    for (const LseBase base : {LseBase::e, LseBase::two})
        for (const bool sink : {false, true}) {
            TensorSet inputs;
            const RandomCase c = of_lse_alone(2, sink, inputs);
            const auto g = attend_gradients(c.tried.problem, {.lse_base = base}, {}, inputs);
            const double each = 3 / (base == LseBase::two ? std::log(2.0) : 1) / (sink ? 3 : 2);
            EXPECT_NEAR(g.d_k[0].value, each, 1e-15);
            EXPECT_NEAR(g.d_k[1].value, each, 1e-15);
            EXPECT_EQ(g.d_v[0].value, inputs[Role::d_o].get(0) / (sink ? 3 : 2));
            if (sink) EXPECT_NEAR(g.d_sinks[0].value, each, 1e-15);
        }
}

// A sink alone is the LSE, and takes its whole gradient; a row that sees nothing has none, and
// whatever is given for it reaches nothing.
TEST(gradients, of_the_lse_of_a_row_that_sees_no_key) {
    TensorSet inputs;
    const RandomCase with = of_lse_alone(0, true, inputs);
    EXPECT_EQ(attend_gradients(with.tried.problem, {}, {}, inputs).d_sinks[0].value, 3);
    const RandomCase without = of_lse_alone(0, false, inputs);
    for (const double given : {3.0, std::nan(""), HUGE_VAL}) {
        inputs[Role::d_lse].set(0, given);
        const auto g = attend_gradients(without.tried.problem, {}, {}, inputs);
        for (const auto* gradient : {&g.d_q, &g.d_k, &g.d_v}) {
            EXPECT_EQ((*gradient)[0].value, 0);
            EXPECT_EQ((*gradient)[0].bound, 0);
        }
    }
    // Of a row that sees a key it is the caller's fault, and nothing is claimed.
    RandomCase seen = of_lse_alone(2, false, inputs);
    inputs[Role::d_lse].set(0, std::nan(""));
    EXPECT_TRUE(std::isinf(attend_gradients(seen.tried.problem, {}, {}, inputs).d_k[1].bound));
}

}  // namespace
}  // namespace attest::oracle
