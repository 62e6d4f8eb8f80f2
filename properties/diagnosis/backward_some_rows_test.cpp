// A wrong backward whose gradients are wrong in some rows alone is named with these, by answers
// made of the reference.

#include "properties/diagnosis/backward_some_rows.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "properties/diagnosis/backward_actor_test.hpp"
#include "properties/law/compare.hpp"

namespace attest::diagnosis {
namespace {

constexpr const char* lines_of_long_calls[] = {
    "b1 hq1 hkv1 tq2 tk70 d3 f32 grad",  "b1 hq2 hkv1 tq3 tk65 d2 causal f32 grad",
    "b2 hq1 hkv1 tq2 tk130 d2 f32 grad", "b1 hq1 hkv1 tq3 tk63 d4 f32 grad",
    "b1 hq1 hkv1 tq2 tk128 d3 f32 grad",
};
constexpr const char* empty_lines[] = {
    "b2 hq2 hkv2 tq3 tk5 d4 lens_kv 0,5 f32 grad",
    "b2 hq4 hkv2 tq4 tk6 d4 mask bool pattern empty_rows f32 grad",
    "b2 hq2 hkv2 tq5 tk3 d4 causal f32 grad",
    "b1 hq2 hkv2 tq6 tk2 d3 causal f32 grad",
};
constexpr const char* grouped_lines[] = {
    "b2 hq6 hkv2 tq3 tk5 d4 sink f32 grad",
    "b1 hq4 hkv2 tq5 tk5 d4 sink f32 grad",
    "b1 hq8 hkv2 tq4 tk4 d3 causal sink f32 grad",
    "b1 hq3 hkv3 tq4 tk4 d3 sink f32 grad",
};

AnswerOf where(Role role, std::function<bool(const Specification&, const Shape&)> is,
               std::function<double(const Specification&, double)> wrong) {
    return changed([=](const Specification& s, GradientNumbers& v) {
        if (v[role].empty()) return;
        const Shape shape = shape_of(s.problem, role).value();
        for (std::size_t n = 0; n < v[role].size(); ++n)
            if (is(s, law::index_of(shape, static_cast<std::int64_t>(n))))
                v[role][n] = wrong(s, v[role][n]);
    });
}

double unscaled(const Specification& s, double x) {
    return x / effective_scale(s.problem);
}

TEST(BackwardSomeRows, ATileOfKeysIsNamed) {
    const auto tail = [](const Specification& s, const Shape& at) {
        return s.problem.len_kv > 64 && at[2] >= s.problem.len_kv / 64 * 64;
    };
    const Diagnosis found = diagnosis_of(where(Role::d_k, tail, unscaled), lines_of_long_calls);
    EXPECT_EQ(found.id, "unscaled_tail_past_64");
    EXPECT_NE(found.says.find("last tile of 64 rows, where there are more"), std::string::npos)
        << found.says;
    // A row of the tail that is right refutes it.
    EXPECT_FALSE(diagnosis_of(where(
                                  Role::d_k,
                                  [&](const Specification& s, const Shape& at) {
                                      return tail(s, at) && at[2] != 69;
                                  },
                                  unscaled),
                              lines_of_long_calls)
                     .known);
}

TEST(BackwardSomeRows, HeadsThatHaveNoGradientAreNamed) {
    const auto others = [](const Specification& s, const Shape& at) {
        return at[0] % group_size(s.problem) != 0;
    };
    const auto none = [](const Specification&, double) { return 0.0; };
    EXPECT_EQ(diagnosis_of(where(Role::d_sinks, others, none), grouped_lines).id,
              "sink_none_member_not_first");
}

TEST(BackwardSomeRows, NaNThatWasWrittenIsNamedByItsRows) {
    const auto blind = [](const Specification& s, const Shape& at) {
        const BackwardCall call(s, s, oracle::attend(s.problem, s.dialect, s.numerics, s.inputs));
        return !call.sees_any(at[0], at[1], at[2]);
    };
    const auto nan = [](const Specification&, double) { return std::nan(""); };
    AllBackwardEvidence all;
    for (const char* line : empty_lines) {
        BackwardEvidence e = evidence_of(parse_case(line), where(Role::d_q, blind, nan));
        e.unwritten = false;
        all.add(std::move(e));
    }
    const Diagnosis found = explain_backward(all);
    EXPECT_EQ(found.id, "nan_gradients_unseen");
}

// Two queries stand at keys 0 and 1, the row behind them at 2.
TEST(BackwardSomeRows, ThosePastALengthStandBehindTheLastQuery) {
    const BackwardEvidence e = evidence_of(
        parse_case("b1 hq1 hkv1 tq3 tk3 d1 alibi lens_q 2 lens_kv 2 f32 grad"), reference);
    EXPECT_EQ(e.call->score(0, 0, 1, 0).ahead, 1);
    EXPECT_EQ(e.call->score(0, 0, 2, 0).ahead, 2);
    EXPECT_EQ(e.call->score(0, 0, 2, 1).ahead, 1);
}

}  // namespace
}  // namespace attest::diagnosis
