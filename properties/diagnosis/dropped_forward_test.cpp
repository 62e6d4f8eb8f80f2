// What a forward may make of dropout, each under its name; and what is right under none.

#include "properties/diagnosis/dropped_forward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/diagnosis/shared_dropout.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/dropout_mask.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::diagnosis {
namespace {

constexpr const char* lines[] = {
    "b1 hq1 hkv1 tq1 tk1 d1 dropout 0.5 seed 1 f32 values small_int",
    "b2 hq4 hkv2 tq5 tk7 d6 dropout 0.25 seed 3 f32",
    "b1 hq2 hkv1 tq6 tk4 d4 causal dropout 0.7 seed 4 f32",
    "b1 hq2 hkv2 tq4 tk6 d3 dv5 sink dropout 0.1 seed 5 f32",
    "b2 hq2 hkv2 tq4 tk4 d4 mask additive dropout 0.8 seed 6 f32",
    "b1 hq2 hkv2 tq8 tk9 d4 dropout 0.4 seed 7 f32",
};

Tensor rounded(const Problem& p, Role role, const std::vector<bound::ExpectedElement>& numbers) {
    Tensor t(type_of(p, role), shape_of(p, role).value());
    for (std::int64_t n = 0; n < t.size(); ++n)
        t.set(n, numbers[static_cast<std::size_t>(n)].value);
    return t;
}

using DroppedAnswer =
    std::function<bound::Expected(const Specification&, const bound::Expected& truth)>;

Diagnosis diagnosis_of(const DroppedAnswer& answer) {
    AllEvidence all;
    for (const char* line : lines) {
        const Case c = parse_case(line);
        Evidence e{{c.problem, {}, {}, law::with_drawn_keep(c.problem, make_inputs(c))}, {}, {}};
        const Specification& s = e.asked;
        e.truth = oracle::attend(s.problem, s.dialect, s.numerics, s.inputs);
        const bound::Expected own = answer(s, e.truth);
        const auto differs = [](const auto& numbers, const auto& truth) {
            for (std::size_t n = 0; n < truth.size(); ++n)
                if (bound::judge(round_to(numbers[n].value, Precision::f32), truth[n],
                                 Precision::f32) == bound::Agreement::disagrees)
                    return true;
            return false;
        };
        e.output_wrong = differs(own.output, e.truth.output);
        e.lse_wrong = differs(own.lse, e.truth.lse);
        e.observed.put(Role::o, rounded(s.problem, Role::o, own.output));
        e.observed.put(Role::lse, rounded(s.problem, Role::lse, own.lse));
        all.add(std::move(e));
    }
    return explain_dropped(all);
}

TEST(DroppedForward, EveryDeviationIsNamed) {
    for (const Deviation& d : dropped_forward_deviations()) {
        const Diagnosis found = diagnosis_of([&](const Specification& s, const auto& truth) {
            bound::Expected own = predict(d, s, truth).value_or(truth);
            // A row of which nothing is claimed: as a right kernel has it.
            for (std::size_t n = 0; n < own.output.size(); ++n)
                if (own.output[n].bound == infinite) own.output[n] = truth.output[n];
            for (std::size_t n = 0; n < own.lse.size(); ++n)
                if (own.lse[n].bound == infinite) own.lse[n] = truth.lse[n];
            return own;
        });
        EXPECT_TRUE(found.known) << d.id << ", next " << found.next_id;
        EXPECT_EQ(found.id, d.id);
    }
}

TEST(DroppedForward, WhatIsRightOrOtherwiseWrongHasNoName) {
    EXPECT_EQ(diagnosis_of([](const auto&, const auto& truth) { return truth; }).cases, 0);
    const Diagnosis other = diagnosis_of([](const auto&, bound::Expected truth) {
        for (bound::ExpectedElement& e : truth.output) e.value *= 1.125;
        return truth;
    });
    EXPECT_FALSE(other.known) << other.id;
    EXPECT_GT(other.tried, 5);
}

DroppedCount counted(double rate, double share) {
    constexpr std::int64_t cells = 1'000'000;
    return {rate, cells, static_cast<std::int64_t>(std::lround(share * cells))};
}

TEST(DroppedForward, EveryOtherRateIsNamed) {
    for (const OtherRate& rate : other_rates()) {
        std::vector<DroppedCount> counts;
        for (const double p : {0.0055, 0.3, 0.25, 0.127, 0.9})
            counts.push_back(counted(p, rate.of(p)));
        const auto found = dropout_at_another_rate(counts);
        ASSERT_TRUE(found) << rate.id;
        EXPECT_EQ(found->id, rate.id);
    }
}

TEST(DroppedForward, TheRateAskedForAndOneNobodyWroteHaveNoName) {
    EXPECT_FALSE(dropout_at_another_rate({counted(0.25, 0.251), counted(0.5, 0.499)}));
    EXPECT_FALSE(dropout_at_another_rate({counted(0.25, 0.4), counted(0.5, 0.7)}));
}

// A kernel that drops with the fate of another cell.
class Dropping : public Actor {
public:
    using Fate = std::function<void(const Problem&, Shape& cell)>;
    explicit Dropping(
        Fate fate, Answer answer = [](const Specification&, const bound::Expected& t) { return t; })
        : Actor(std::move(answer)), fate_(std::move(fate)) {}
    worker::CallResult forward(const Problem& problem, const TensorSet& inputs) override {
        TensorSet with = inputs;
        if (problem.dropout.p > 0) {
            const Tensor drawn = law::drawn_keep(problem);
            Tensor& keep = with.put(Role::dropout_keep, drawn);
            for (std::int64_t at = 0; at < keep.size(); ++at) {
                Shape cell = law::index_of(keep.shape(), at);
                fate_(problem, cell);
                keep.set_bits(at, drawn.bits(drawn.flat(cell[0], cell[1], cell[2], cell[3])));
            }
        }
        return Actor::forward(problem, with);
    }

private:
    Fate fate_;
};

std::string shared_by(const Dropping::Fate& fate) {
    Dropping kernel(fate);
    search::Counterexample c;
    c.smallest = c.found.tried = parse_case("b1 hq4 hkv2 tq9 tk9 d9 dropout 0.5 seed 3 f32");
    const auto found = shared_dropout(kernel, c);
    return found ? found->id : "";
}

TEST(DroppedForward, WeightsThatAreDroppedTogetherAreNamed) {
    EXPECT_EQ(shared_by([](const Problem&, Shape&) {}), "");
    EXPECT_EQ(shared_by([](const Problem&, Shape& at) { at[3] -= at[3] % 2; }),
              "dropout_keys_by_2");
    EXPECT_EQ(shared_by([](const Problem&, Shape& at) { at[2] -= at[2] % 4; }),
              "dropout_queries_by_2");  // and those in pairs of these
    EXPECT_EQ(shared_by([](const Problem& p, Shape& at) { at[1] %= group_size(p); }),
              "dropout_by_head_in_group");
    EXPECT_EQ(shared_by([](const Problem&, Shape& at) { at[1] = 0; }), "dropout_one_for_heads");
}

// A defect that dropout has no part in, in the case of a law that asks for it.
TEST(DroppedForward, WhatFailsWithoutDropoutTooIsDiagnosedWithoutIt) {
    const auto& ignored = *std::ranges::find(deviations(), "window_ignored", &Deviation::id);
    const Answer wrong = [&ignored](const Specification& s, const bound::Expected& truth) {
        return predict(ignored, s, truth).value_or(truth);
    };
    const auto says = [&wrong](const char* line) {
        Dropping kernel([](const Problem&, Shape&) {}, wrong);
        search::Counterexample c;
        c.law = "dropout.replay";
        c.smallest = c.found.tried = parse_case(line);
        return diagnose(kernel, c, {}).says;
    };
    EXPECT_EQ(says("b1 hq2 hkv2 tq9 tk9 d4 window 2 1 dropout 0.5 seed 2 f32"),
              ignored.says + ", seen without dropout");
    EXPECT_EQ(says("b1 hq2 hkv2 tq9 tk9 d4 dropout 0.5 seed 2 f32"), "");
}

// In a path of its own: without dropout every answer is right.
TEST(DroppedForward, WhatIsWrongBesideTheMaskIsNamed) {
    const auto& coarse = *std::ranges::find(deviations(), "weights_rounded_bf16", &Deviation::id);
    Dropping kernel([](const Problem&, Shape&) {},
                    [&coarse](const Specification& s, const bound::Expected& truth) {
                        return s.problem.dropout.p > 0 ? predict(coarse, s, truth).value_or(truth)
                                                       : truth;
                    });
    search::Counterexample c;
    c.law = "reference.dropout";
    c.smallest = c.found.tried = parse_case("b1 hq2 hkv2 tq3 tk9 d4 dropout 0.5 seed 2 f32");
    EXPECT_EQ(diagnose(kernel, c, {}).id, coarse.id);
}

// What happens to the finished output happens to what the factor 1/(1-p) has been through.
TEST(DroppedForward, AnOutputThatIsCutOffIsNamed) {
    Dropping kernel([](const Problem&, Shape&) {},
                    [](const Specification& s, bound::Expected own) {
                        if (s.problem.dropout.p > 0)
                            for (bound::ExpectedElement& o : own.output)
                                o.value = cut_off(o.value, s.problem.format_o);
                        return own;
                    });
    search::Counterexample c;
    c.law = "reference.dropout";
    c.smallest = c.found.tried = parse_case("b1 hq2 hkv2 tq3 tk9 d4 dropout 0.3 seed 2 bf16");
    EXPECT_EQ(diagnose(kernel, c, {}).id, "output_cut_off");
}

// Where it holds no relation tells: that it does in so many elements is said of these cases alone.
TEST(DroppedForward, WhatHoldsInSomeCasesIsSaidOfThese) {
    const auto list = dropped_forward_deviations();
    const auto& unscaled = *std::ranges::find(list, "kept_unscaled", &Deviation::id);
    const Diagnosis found = diagnosis_of([&](const Specification& s, const auto& truth) {
        const bool here = s.problem.len_q == 5 || s.problem.len_q == 6;
        return here ? predict(unscaled, s, truth).value_or(truth) : truth;
    });
    EXPECT_EQ(found.says, unscaled.says + ", in the cases that fail");
}

}  // namespace
}  // namespace attest::diagnosis
