// Steps that show in several formats, indices and calls, and are one defect with one name.

#include <gtest/gtest.h>

#include <algorithm>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {
namespace {

// Keys from 128 on are read at an index of seven bits.
TEST(OneDefect, AnIndexOfTooFewBitsIsNamed) {
    const auto cut = [](const Specification& s, const bound::Expected&) {
        Specification own = s;
        for (const Role role : {Role::k, Role::v}) {
            const Tensor& t = s.inputs[role];
            own.inputs.put(role, remake(t.type(), t.shape(),
                                        [&](std::int64_t b, std::int64_t h, std::int64_t j,
                                            std::int64_t c) { return t.at(b, h, j % 128, c); }));
        }
        return oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    };
    EXPECT_EQ(diagnosed_of(cut, "b1 hq1 hkv1 tq1 tk130 d3 f32").says,
              "key and value j mod 128 in place of those of key j");
}

TEST(OneDefect, LengthsOfAnotherSequenceAreNamed) {
    const auto eight = [](const Specification& s, const bound::Expected&) {
        Specification own = s;
        std::vector<std::int64_t>& lens = own.problem.mask.lens_kv;
        for (std::size_t b = 8; b < lens.size(); ++b) lens[b] = lens[b % 8];
        for (std::size_t b = 0; b < lens.size(); ++b)
            own.inputs[Role::lens_kv].set(static_cast<std::int64_t>(b),
                                          static_cast<double>(lens[b]));
        return oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
    };
    EXPECT_EQ(diagnosed_of(eight, "b9 hq1 hkv1 tq1 tk3 d3 lens_kv 1,2,3,1,2,3,1,2,3 f32").says,
              "the key length of sequence b mod 8 in place of that of b");
}

// The same step in f16 and in bfloat16 is one: the format of the inputs.
TEST(OneDefect, AStepInTheFormatOfTheInputsHasOneName) {
    const auto& own = *std::ranges::find(deviations(), "scores_rounded_own", &Deviation::id);
    const auto rounding = [&own](const Specification& s, const bound::Expected& truth) {
        return predict(own, s, truth).value_or(truth);
    };
    for (const char* line : {"b1 hq2 hkv2 tq3 tk5 d4 f16", "b1 hq2 hkv2 tq3 tk5 d4 softcap 2 bf16"})
        EXPECT_EQ(diagnosed_of(rounding, line).id, "scores_rounded_own") << line;
}

// A kernel that parts whole tiles among its splits rounds at other keys than one that parts keys.
TEST(OneDefect, WhatSplitsTellOfTilesRefutesNothing) {
    const auto& whole = *std::ranges::find(deviations(), "sum_rounded_bf16_32", &Deviation::id);
    const auto in_tiles = [&whole](const Specification& s, const bound::Expected& truth) {
        Specification alone = s;  // whole tiles: of these lengths all keys are in the first split
        if (s.problem.len_kv <= 32) alone.problem.splits = 0;
        return predict(whole, alone, truth).value_or(truth);
    };
    Actor actor(in_tiles);
    AllEvidence evidence;
    for (const char* line : {"b1 hq2 hkv2 tq3 tk20 d4 f32", "b1 hq2 hkv2 tq3 tk90 d4 f32",
                             "b1 hq2 hkv2 tq3 tk20 d4 splits 2 f32"})
        evidence.add(evidence_of(actor, parse_case(line)));
    EXPECT_EQ(evidence.wrong.size(), 3u);
    EXPECT_EQ(explain_evidence(evidence).id, "sum_rounded_bf16_32");
}

// Scores some 12 below the start: weights of f16 have lost bits, and the output is no NaN yet.
TEST(OneDefect, AMaximumThatStartsAtZeroIsNamedInF16) {
    const auto& own = *std::ranges::find(deviations(), "maximum_finite_f16", &Deviation::id);
    Actor low([&own](const Specification& s, const bound::Expected& truth) {
        return predict(own, s, truth).value_or(truth);
    });
    Numerics numerics;
    numerics.weights = NumberFormat::same;
    low.declare(numerics);
    EXPECT_EQ(diagnosed_by(low, "b1 hq1 hkv1 tq1 tk1 d1 scale 12 f16 q ones k [-1] v [1]").id,
              "maximum_finite_f16");
}

/// Whatever its calls hold, one in so many is wrong.
struct NowAndThen : Actor {
    explicit NowAndThen(int period)
        : Actor([this, period](const Specification&, const bound::Expected& truth) {
              bound::Expected own = truth;
              if (++calls_ % period == 0)
                  for (bound::ExpectedElement& e : own.output) e.value += 1;
              return own;
          }) {}

private:
    int calls_ = 0;
};

TEST(OneDefect, WhatIsWrongNowAndThenIsNotPutDownToOtherThreadsOrStrides) {
    NowAndThen racing(97);
    search::Counterexample c;
    c.law = "hygiene.concurrent";
    c.smallest = c.found.tried = parse_case("b1 hq1 hkv1 tq1 tk2 d1 f32");
    EXPECT_EQ(diagnose(racing, c, {}).id, "unsteady");
    Actor steady([](const Specification&, const bound::Expected& truth) { return truth; });
    EXPECT_EQ(diagnose(steady, c, {}).id, "disturbed");
}

}  // namespace
}  // namespace attest::diagnosis
