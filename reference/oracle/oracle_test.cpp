// Cases that can be worked out on paper.

#include "reference/oracle/oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/oracle/certified_test.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// One query, keys of one channel whose scores are `scores` (q = 1, scale = 1).
struct Scored {
    Problem problem;
    TensorSet inputs;
    Scored(const std::vector<double>& scores, const std::vector<double>& values) {
        problem.len_kv = static_cast<std::int64_t>(scores.size());
        problem.scale = 1.0;
        problem.format_q = problem.format_kv = problem.format_o = Precision::f64;
        fill(scores, values);
    }
    void fill(const std::vector<double>& scores, const std::vector<double>& values) {
        Tensor& q = inputs.put(Role::q, Tensor(ElementType::f64, {1, 1, 1, 1}));
        q.set(0, 1.0);
        const Shape shape{1, 1, problem.len_kv, 1};
        Tensor& k = inputs.put(Role::k, Tensor(ElementType::f64, shape));
        Tensor& v = inputs.put(Role::v, Tensor(ElementType::f64, shape));
        for (std::size_t j = 0; j < scores.size(); ++j) {
            k.set(static_cast<std::int64_t>(j), scores[j]);
            v.set(static_cast<std::int64_t>(j), values[j]);
        }
    }
    bound::Expected attend(Arithmetic arithmetic, const Dialect& dialect = {}) const {
        return oracle::attend(problem, dialect, Numerics{}, inputs, arithmetic);
    }
};

Problem small() {
    Problem p;
    p.len_q = 3;
    p.len_kv = 4;
    p.dim_qk = 2;
    return p;
}

TEST(oracle, two_keys_two_apart_weigh_eighty_eight_to_twelve) {
    const Scored two({1, 3}, {0, 1});
    const double weight = 1 / (1 + std::exp(-2.0));  // 0.8808
    for (const Arithmetic a : arithmetics) {
        const bound::Expected e = two.attend(a);
        expect_certified(e.output[0], weight);
        expect_certified(e.lse[0], 3 + std::log1p(std::exp(-2.0)));
    }
}

TEST(oracle, a_score_far_above_the_rest_takes_all) {
    const Scored peak({50, 1, 1, 1}, {2, -1, 5, 7});
    for (const Arithmetic a : arithmetics) {
        const bound::Expected e = peak.attend(a);
        expect_certified(e.output[0], 2 + 5 * std::exp(-49.0));
        expect_certified(e.lse[0], 50 + 3 * std::exp(-49.0));
    }
}

TEST(oracle, one_key_gives_its_value) {
    const Scored one({-3.25}, {0.1});
    for (const Arithmetic a : arithmetics) {
        const bound::Expected e = one.attend(a);
        EXPECT_EQ(e.output[0].value, 0.1);
        EXPECT_EQ(e.lse[0].value, -3.25);
    }
}

TEST(oracle, equal_keys_give_the_mean) {
    const Scored equal({2, 2, 2, 2}, {1, 2, 3, 6});
    for (const Arithmetic a : arithmetics) {
        const bound::Expected e = equal.attend(a);
        EXPECT_EQ(e.output[0].value, 3);
        expect_certified(e.lse[0], 2 + std::log(4.0));
    }
}

TEST(oracle, a_sink_takes_its_share_and_enters_the_lse) {
    Scored with({0, 0}, {1, 1});
    with.problem.sink = true;
    with.inputs.put(Role::sinks, Tensor(ElementType::f32, {1, 1, 1, 1})).set(0, 0.0);
    for (const Arithmetic a : arithmetics) {
        const bound::Expected e = with.attend(a);
        expect_certified(e.output[0], 2.0 / 3);
        expect_certified(e.lse[0], std::log(3.0));
        const bound::Expected two = with.attend(a, {.lse_base = LseBase::two});
        expect_certified(two.lse[0], std::log2(3.0));
    }
}

TEST(oracle, a_sink_alone_gives_zero_and_itself) {
    Scored with({0, 0}, {1, 1});
    with.problem.sink = true;
    with.problem.mask.lens_kv = {0};
    with.inputs.put(Role::sinks, Tensor(ElementType::f32, {1, 1, 1, 1})).set(0, 1.5);
    const bound::Expected e = with.attend(Arithmetic::double_double, {.empty_row = EmptyRow::nan});
    EXPECT_EQ(e.output[0].value, 0);
    EXPECT_EQ(e.output[0].bound, 0);
    EXPECT_EQ(e.lse[0].value, 1.5);
    EXPECT_EQ(e.row_empty[0], 1);
}

TEST(oracle, empty_rows_follow_the_dialect) {
    Scored none({0, 0}, {1, 1});
    none.problem.mask.lens_kv = {0};
    const auto judged = [&](EmptyRow policy, double o, double lse) {
        const bound::Expected e = none.attend(Arithmetic::double_double, {.empty_row = policy});
        EXPECT_EQ(e.row_empty[0], 1);
        return std::pair(bound::judge(o, e.output[0], Precision::f64),
                         bound::judge(lse, e.lse[0], Precision::f64));
    };
    constexpr auto yes = bound::Agreement::agrees, no = bound::Agreement::disagrees;
    EXPECT_EQ(judged(EmptyRow::zeros, 0, -infinite), std::pair(yes, yes));
    EXPECT_EQ(judged(EmptyRow::zeros, NAN, 0), std::pair(no, no));
    EXPECT_EQ(judged(EmptyRow::zeros, 1e-300, NAN), std::pair(no, no));
    EXPECT_EQ(judged(EmptyRow::nan, NAN, NAN), std::pair(yes, yes));
    EXPECT_EQ(judged(EmptyRow::nan, 0, 7), std::pair(no, yes));
    EXPECT_EQ(judged(EmptyRow::refuse, NAN, 3), std::pair(yes, yes));
    EXPECT_EQ(judged(EmptyRow::refuse, 1, 3), std::pair(yes, yes));
    const bound::Expected e =
        none.attend(Arithmetic::double_double, {.empty_lse = EmptyLse::infinity});
    EXPECT_EQ(bound::judge(infinite, e.lse[0], Precision::f64), yes);
    EXPECT_EQ(bound::judge(-infinite, e.lse[0], Precision::f64), no);
}

TEST(oracle, rows_past_the_queries_are_zero_whatever_the_dialect) {
    Scored none({0, 0}, {1, 1});
    none.problem.mask.lens_q = {0};
    const bound::Expected e = none.attend(Arithmetic::double_double, {.empty_row = EmptyRow::nan});
    EXPECT_EQ(e.output[0].value, 0);
    EXPECT_EQ(e.output[0].bound, 0);
    EXPECT_EQ(e.lse[0].value, -infinite);
    const bound::Expected other =
        none.attend(Arithmetic::double_double, {.empty_lse = EmptyLse::infinity});
    EXPECT_EQ(other.lse[0].value, -infinite);
}

TEST(oracle, softcap_bends_before_or_after_the_bias) {
    Scored capped({4, 0}, {1, 0});
    capped.problem.softcap = 2;
    capped.problem.mask.tensor.kind = MaskKind::additive;
    Tensor& mask = capped.inputs.put(Role::mask, Tensor(ElementType::f64, {1, 1, 1, 2}));
    mask.set(0, 1.0);
    const double before = 2 * std::tanh(2.0) + 1, after = 2 * std::tanh(2.5);
    for (const Arithmetic a : arithmetics) {
        expect_certified(capped.attend(a).lse[0], std::log(std::exp(before) + 1), 1e-15);
        const Dialect late{.softcap = SoftcapPlace::after_bias};
        expect_certified(capped.attend(a, late).lse[0], std::log(std::exp(after) + 1), 1e-15);
    }
}

TEST(oracle, nonfinite_inputs_reach_the_rows_that_see_them_by_kind) {
    constexpr auto yes = bound::Agreement::agrees, no = bound::Agreement::disagrees;
    const auto judged = [](const std::vector<double>& k, const std::vector<double>& v, double seen,
                           Dialect dialect = {}) {
        const bound::Expected e = Scored(k, v).attend(Arithmetic::double_double, dialect);
        return bound::judge(seen, e.output[0], Precision::f64);
    };
    EXPECT_EQ(judged({0, NAN}, {1, 1}, NAN), yes);
    EXPECT_EQ(judged({0, NAN}, {1, 1}, 1.0), no);
    EXPECT_EQ(judged({0, NAN}, {1, 1}, 1.0, {.nonfinite = Nonfinite::unspecified}), yes);
    EXPECT_EQ(judged({0, 0}, {1, NAN}, 1.0), no);
    EXPECT_EQ(judged({0, 0}, {1, NAN}, NAN), yes);
    EXPECT_EQ(judged({0, 0}, {1, infinite}, infinite), yes);
    EXPECT_EQ(judged({0, 0}, {1, infinite}, NAN), yes);
    EXPECT_EQ(judged({0, 0}, {1, infinite}, 3.0), no);
    EXPECT_EQ(judged({0, infinite}, {1, 2}, 2.0), no);
    EXPECT_EQ(judged({0, -infinite}, {1, 2}, 1.0), yes);  // weight 0
    EXPECT_EQ(judged({0, -infinite}, {1, 2}, 1.5), no);
}

TEST(oracle, a_cap_that_bends_an_infinity_leaves_the_row_open) {
    Scored capped({1, infinite}, {1, 2});
    capped.problem.softcap = 2;
    const bound::Expected e = capped.attend(Arithmetic::double_double);
    EXPECT_EQ(bound::judge(1.7, e.output[0], Precision::f64), bound::Agreement::agrees);
    EXPECT_EQ(bound::judge(NAN, e.output[0], Precision::f64), bound::Agreement::agrees);
    Scored nan({1, NAN}, {1, 2});
    nan.problem.softcap = 2;
    EXPECT_EQ(bound::judge(1.7, nan.attend(Arithmetic::double_double).output[0], Precision::f64),
              bound::Agreement::disagrees);
}

TEST(oracle, poison_in_hidden_keys_changes_nothing) {
    Scored hidden({1, 2, 3}, {1, 2, 3});
    const bound::Expected before = [&] {
        hidden.problem.mask.lens_kv = {2};
        return hidden.attend(Arithmetic::double_double);
    }();
    hidden.inputs[Role::k].set(2, NAN);
    hidden.inputs[Role::v].set(2, infinite);
    const bound::Expected after = hidden.attend(Arithmetic::double_double);
    EXPECT_EQ(before.output[0].value, after.output[0].value);
    EXPECT_EQ(before.output[0].bound, after.output[0].bound);
}

TEST(oracle, rows_asked_for_come_in_their_order) {
    Problem p = small();
    p.heads_q = 2;
    const TensorSet inputs = make_inputs({p, {}});
    const bound::Expected all = attend(p, {}, {}, inputs, Arithmetic::filtered);
    const bound::Expected some = attend_rows(p, {}, {}, inputs, {4, 1}, Arithmetic::filtered);
    EXPECT_TRUE(all.rows.empty());
    EXPECT_EQ(some.rows, (std::vector<std::int64_t>{4, 1}));
    const std::size_t width = all.output.size() / all.lse.size();
    ASSERT_EQ(some.output.size(), 2 * width);
    for (std::size_t n = 0; n < 2; ++n) {
        const std::size_t row = n == 0 ? 4 : 1;
        EXPECT_EQ(some.lse[n].value, all.lse[row].value);
        for (std::size_t c = 0; c < width; ++c) {
            EXPECT_EQ(some.output[n * width + c].value, all.output[row * width + c].value);
            EXPECT_EQ(some.output[n * width + c].bound, all.output[row * width + c].bound);
        }
    }
    EXPECT_THROW(attend_rows(p, {}, {}, inputs, {6}, Arithmetic::double_double), BadInput);
}

TEST(oracle, the_detail_of_a_row_adds_up) {
    Problem p = small();
    p.mask.causal = true;
    const TensorSet inputs = make_inputs({p, {}});
    const RowDetail row = RowDetails(p, {}, inputs).row(0, 0, 1);
    const bound::Expected e = attend(p, {}, {}, inputs);
    double output = 0, total = 0;
    for (std::int64_t j = 0; j < 4; ++j) {
        output += row.weights[static_cast<std::size_t>(j)] * inputs[Role::v].at(0, 0, j, 0);
        total += row.weights[static_cast<std::size_t>(j)];
    }
    EXPECT_NEAR(output, e.output[2].value, 1e-15);
    EXPECT_NEAR(total, 1, 1e-15);
    EXPECT_EQ(row.scores[3], -infinite);
    EXPECT_EQ(row.weights[3], 0);
    EXPECT_NEAR(row.lse, e.lse[1].value, 1e-15);
}

TEST(oracle, bad_inputs_are_refused_with_the_place) {
    Problem p = small();
    TensorSet inputs = make_inputs({p, {}});
    inputs.erase(Role::v);
    EXPECT_THROW(attend(p, {}, {}, inputs), BadInput);
    p.dropout.p = 0.5;
    EXPECT_THROW(attend(p, {}, {}, make_inputs({p, {}})), BadInput);
}

}  // namespace
}  // namespace attest::oracle
