// Steps that show in several formats, indices and calls, and are one defect with one name.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/fitted.hpp"
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

/// What a kernel is taken for that feeds its weights to the second product in f16.
std::string played_in_f16(std::span<const Deviation> all, const char* id, const char* line) {
    const auto own = std::ranges::find(all, id, &Deviation::id);
    if (own == all.end()) return "no such deviation";
    Actor actor([own](const Specification& s, const bound::Expected& truth) {
        return predict(*own, s, truth).value_or(truth);
    });
    Numerics numerics;
    numerics.weights = NumberFormat::same;
    actor.declare(numerics);
    return diagnosed_by(actor, line).id;
}

// Scores some 12 below the start: weights of f16 have lost bits, and the output is no NaN yet.
TEST(OneDefect, AMaximumThatStartsAtZeroIsNamedInF16) {
    EXPECT_EQ(played_in_f16(deviations(), "maximum_finite_f16",
                            "b1 hq1 hkv1 tq1 tk1 d1 scale 12 f16 q ones k [-1] v [1]"),
              "maximum_finite_f16");
}

TEST(OneDefect, AMaximumOfHiddenKeysIsNamedInF16) {
    const std::vector<Deviation> all = starting_maxima();
    for (const auto& [id, line] :
         {std::pair{"maximum_of_hidden_f16", "b1 hq2 hkv2 tq7 tk40 d4 causal scale 6 f16"},
          std::pair{"maximum_of_hidden_f16_16", "b1 hq2 hkv2 tq40 tk40 d4 causal scale 6 f16"},
          std::pair{"maximum_of_masked_f16",
                    "b1 hq2 hkv2 tq9 tk9 d4 causal mask bool scale 6 f16"}})
        EXPECT_EQ(played_in_f16(all, id, line), id);
}

// One defect breaks many laws: it is sought once, and held against the calls of all.
TEST(OneDefect, WhatAnotherLawNamedIsTriedFirst) {
    const auto known = [](const char* id) {
        const Deviation& d = *std::ranges::find(deviations(), id, &Deviation::id);
        return NamedDeviation{id, d.says, std::make_shared<const Deviation>(d)};
    };
    const NamedDeviation own = known("causal_top_left"), other = known("causal_ignored");
    Actor actor([&own](const Specification& s, const bound::Expected& truth) {
        return predict(*own.deviation, s, truth).value_or(truth);
    });
    AllEvidence evidence;
    for (const char* line : {"b1 hq2 hkv2 tq3 tk9 d4 causal f32", "b1 hq2 hkv2 tq5 tk8 d4 f32",
                             "b1 hq2 hkv2 tq5 tk7 d4 causal f32"})
        evidence.add(evidence_of(actor, parse_case(line)));
    ASSERT_EQ(evidence.wrong.size(), 2u);
    const Diagnosis shared = explain_evidence(evidence, {}, {other, own});
    EXPECT_EQ(shared.id, "causal_top_left");
    EXPECT_EQ(shared.tried, 2);
    const Diagnosis sought = explain_evidence(evidence, {}, {other});
    EXPECT_EQ(sought.id, "causal_top_left");
    EXPECT_GT(sought.tried, 2);
}

// What right calls limit is the same where it holds in the same calls.
TEST(OneDefect, WhatWasNamedWithALimitIsTakenWithThatAlone) {
    const auto& own = *std::ranges::find(deviations(), "sink_omitted", &Deviation::id);
    Actor actor([&own](const Specification& s, const bound::Expected& truth) {
        return s.problem.dim_qk < 5 ? truth : predict(own, s, truth).value_or(truth);
    });
    AllEvidence evidence;
    for (const char* line :
         {"b1 hq2 hkv2 tq3 tk9 d5 dv3 sink f32", "b1 hq2 hkv2 tq3 tk8 d6 dv3 sink f32",
          "b1 hq2 hkv2 tq3 tk9 d7 dv3 sink f32", "b1 hq2 hkv2 tq3 tk9 d4 dv3 sink f32",
          "b1 hq2 hkv2 tq3 tk8 d3 dv3 sink f32"})
        evidence.add(evidence_of(actor, parse_case(line)));
    const Diagnosis sought = explain_evidence(evidence);
    ASSERT_TRUE(sought.known && sought.holds_in) << sought.says;
    NamedDeviation named{sought.id, sought.says, sought.deviation};
    EXPECT_EQ(explain_evidence(evidence, {}, {named}).tried, 1);
    EXPECT_EQ(explain_evidence(evidence, {}, {named}).says, sought.says);
    named.says += ", and elsewhere";
    EXPECT_EQ(explain_evidence(evidence, {}, {named}).tried, sought.tried);
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
