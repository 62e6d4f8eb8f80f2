// Which counterexamples are one defect.

#include "properties/diagnosis/cause.hpp"

#include <gtest/gtest.h>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/cause_example_test.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "reference/problem/case.hpp"

namespace attest::diagnosis {
namespace {

std::string id_of(const CounterexampleReport& c) {
    return c.example.id.substr(0, 8);
}

TEST(Cause, OneDefectIsOneCause) {
    const std::string small = "b1 hq1 hkv1 tq2 tk1 d1 causal f32";
    const std::string large = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    std::vector<CounterexampleReport> all{
        counterexample("reference.output", "causal_top_left", large),
        counterexample("partition.tile_edges", "", large),
        counterexample("masking.causal", "causal_top_left", small),
        counterexample("convex_hull.box", "", "b1 hq1 hkv1 tq3 tk1 d1 causal f32"),
        counterexample("rank.scores", "", "b1 hq1 hkv1 tq1 tk9 d1 f32"),
        counterexample("hygiene.batch_invariant", "", "b2 hq1 hkv1 tq1 tk9 d1 f32"),
        counterexample("hygiene.stale_state", "remembers", "b1 hq1 hkv1 tq1 tk1 d1 f32"),
    };
    all[5].diagnosis.cases = all[6].diagnosis.cases = 0;
    std::vector<CounterexampleReport> forgetful(all.begin(), all.end() - 1);
    const std::vector<CauseReport> causes = group_causes(forgetful);
    ASSERT_EQ(causes.size(), 2u);
    EXPECT_EQ(causes[0].laws.size(), 4u);  // what nothing explains, by itself or after other calls
    EXPECT_EQ(causes[1].laws.size(), 2u);
    EXPECT_TRUE(causes[1].known);
    EXPECT_EQ(causes[1].lead, id_of(all[2]));  // masking before reference, and smaller
    EXPECT_EQ(causes[1].title, "Sentence of masking.causal");
    EXPECT_EQ(forgetful[4].cause, "c1");
    const std::vector<CauseReport> remembering = group_causes(all);
    ASSERT_EQ(remembering.size(), 2u);
    EXPECT_EQ(remembering[0].lead, id_of(all[6]));
    EXPECT_EQ(remembering[0].laws.size(), 5u);
}

TEST(Cause, WhatDependsOnTheScheduleIsNotToldToRemember) {
    const std::string line = "b1 hq1 hkv1 tq1 tk1 d1 f32";
    std::vector<CounterexampleReport> all{counterexample("hygiene.sequence", "remembers", line),
                                          counterexample("reference.output", "remembers", line)};
    // Whatever single calls looked like.
    all.push_back(counterexample("masking.causal", "hidden_leaks", line));
    for (CounterexampleReport& c : all) c.diagnosis.cases = 0;
    all[2].diagnosis.cases = 4;
    all[2].example.confirmed.alone = {3, 20};
    const std::string memory = all[0].diagnosis.says = remembered().says;
    std::vector<CounterexampleReport> alone = all;
    group_causes(alone);
    EXPECT_EQ(alone[0].diagnosis.says, memory);
    all[1].example.confirmed.how = search::Confirmation::schedule;
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_NE(all[0].diagnosis.says.find("thread schedule"), std::string::npos);
    EXPECT_EQ(all[0].diagnosis.says, all[2].diagnosis.says);
}

TEST(Cause, StrayReadsBesideIgnoredStridesAreOneDefect) {
    const std::string strided = "b1 hq1 hkv1 tq1 tk2 d2 layout_v bhdt f32";
    std::vector<CounterexampleReport> all{
        counterexample("reference.output", "strides_ignored", strided),
        counterexample("masking.padding", "", strided),
        counterexample("convex_hull.box", "", strided),
        counterexample("hygiene.sequence", "", "b1 hq1 hkv1 tq1 tk1 d1 f32"),
    };
    for (std::size_t n = 1; n < all.size(); ++n) {
        all[n].example.outcome = worker::Outcome::crash;
        all[n].example.fault.emplace().stray = worker::Fault::Access::read;
    }
    EXPECT_EQ(group_causes(all).size(), 1u);
    all[2].example.smallest = all[3].example.smallest;  // most have no strides
    EXPECT_EQ(group_causes(all).size(), 2u);
}

TEST(Cause, AnExpThatWasShownTakesWhatLiesWithinItsBounds) {
    const std::string line = "b1 hq1 hkv1 tq1 tk2 d1 f32";
    std::vector<CounterexampleReport> all{
        counterexample("reference.output", "step_exp_1024", line),
        counterexample("partition.order", "", line),
    };
    std::vector<CounterexampleReport> open = all;
    all[1].diagnosis.fits = {"step_exp_1024"};
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_TRUE(all[1].diagnosis.known);
    group_causes(open);
    EXPECT_FALSE(open[0].diagnosis.known);  // something else is left unexplained
}

TEST(Cause, AsFewAsPossibleExplainAll) {
    const std::string line = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    std::vector<CounterexampleReport> all{
        counterexample("masking.causal", "causal_top_left", line),
        counterexample("masking.padding", "mask_ignored", line),
        counterexample("reference.output", "hidden_finite", line)};
    EXPECT_EQ(group_causes(all).size(), 3u);
    all[0].diagnosis.also = {explanation("hidden_finite")};
    all[1].diagnosis.also = {explanation("hidden_finite")};
    const std::vector<CauseReport> causes = group_causes(all);
    ASSERT_EQ(causes.size(), 1u);
    for (const CounterexampleReport& c : all) EXPECT_EQ(c.diagnosis.id, "hidden_finite");
    EXPECT_EQ(all[0].diagnosis.says, "what hidden_finite is");
}

TEST(Cause, WhatRightAnswersRefuteStandsBehind) {
    const std::string line = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    std::vector<CounterexampleReport> all{counterexample("masking.causal", "zeros", line)};
    all[0].diagnosis.refuted = true;
    all[0].diagnosis.also = {explanation("keys_dropped")};
    group_causes(all);
    EXPECT_EQ(all[0].diagnosis.id, "keys_dropped");
}

// A shape alone is no evidence: what an explanation does not explain is another cause.
TEST(Cause, WhatNothingExplainsIsNotJoinedToWhatIs) {
    const std::string line = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    std::vector<CounterexampleReport> all{counterexample("reference.lse", "last_key", line),
                                          counterexample("reference.decode", "", line)};
    EXPECT_EQ(group_causes(all).size(), 2u);
    all[1].diagnosis.cases = 0;  // right by itself
    EXPECT_EQ(group_causes(all).size(), 1u);
}

TEST(Cause, WhatAgreesInFewElementsIsPutDownToWhatIsKnown) {
    const std::string line = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    std::vector<CounterexampleReport> all{counterexample("reference.lse", "last_key", line),
                                          counterexample("reference.decode", "", line)};
    all[1].diagnosis.also = {explanation("first_key"), explanation("last_key")};
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_EQ(all[1].diagnosis.id, "last_key");
    EXPECT_TRUE(all[1].diagnosis.known);
}

std::shared_ptr<const AllEvidence> evidence_of_scaled(double output_factor, const char* line) {
    Actor actor([output_factor](const Specification& s, const bound::Expected&) {
        const Specification own = with_scale(s, 2 * effective_scale(s.problem));
        bound::Expected e = oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
        if (s.problem.len_kv > 8)
            for (bound::ExpectedElement& o : e.output) o.value *= output_factor;
        return e;
    });
    AllEvidence all;
    for (const std::string keys : {"5", "6", "9"})
        all.add(evidence_of(actor, parse_case("b1 hq1 hkv1 tq3 tk" + keys + line)));
    return std::make_shared<const AllEvidence>(std::move(all));
}

Deviation scaled(double factor) {
    return {.id = "scaled",
            .says = "another scale",
            .respecify = [factor](const Specification& s) -> std::optional<Specification> {
                return with_scale(s, factor * effective_scale(s.problem));
            }};
}

// What one counterexample names is tried on the calls of the others.
TEST(Cause, WhatOneNamesIsTriedOnAllOthers) {
    const std::string line = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    const auto causes = [&](double factor, double output_factor, bool general) {
        std::vector<CounterexampleReport> all{
            counterexample("reference.lse", "scaled", line),
            counterexample("reference.decode", general ? "not_finite" : "", line)};
        all[0].diagnosis.deviation = std::make_shared<const Deviation>(scaled(factor));
        all[1].diagnosis.general = general;
        all[1].diagnosis.evidence = evidence_of_scaled(output_factor, " d4 f32");
        const std::size_t n = group_causes(all).size();
        return std::pair(n, all[1].diagnosis.id);
    };
    EXPECT_EQ(causes(2, 1, false), std::pair(std::size_t{1}, std::string("scaled")));
    EXPECT_EQ(causes(2, 1, true), std::pair(std::size_t{1}, std::string("scaled")));
    EXPECT_EQ(causes(2, 1.5, false).first, 1u);  // two calls of three, the first among them
    EXPECT_NE(causes(3, 1, false).second, "scaled");
    EXPECT_NE(causes(3, 1, true).second, "scaled");
}

// A name found without them has to bear the right answers to calls of other laws as well.
TEST(Cause, RightAnswersToCallsOfOthersRefute) {
    const std::string line = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    const auto known_beside = [&](double factor) {
        std::vector<CounterexampleReport> all{counterexample("reference.lse", "scaled", line),
                                              counterexample("reference.decode", "", line)};
        all[0].diagnosis.deviation = std::make_shared<const Deviation>(scaled(2));
        all[0].diagnosis.evidence = evidence_of_scaled(1, " d4 f32");
        Actor other([factor](const Specification& s, const bound::Expected&) {
            const Specification own = with_scale(s, factor * effective_scale(s.problem));
            return oracle::attend(own.problem, own.dialect, own.numerics, own.inputs);
        });
        AllEvidence calls;
        calls.add(evidence_of(other, parse_case("b1 hq1 hkv1 tq3 tk7 d4 f32")));
        EXPECT_EQ(calls.right.size(), factor == 1 ? 1u : 0u);
        all[1].diagnosis.evidence = std::make_shared<const AllEvidence>(std::move(calls));
        group_causes(all);
        return all[0].diagnosis.known;
    };
    EXPECT_FALSE(known_beside(1));
    EXPECT_TRUE(known_beside(2));
    EXPECT_TRUE(known_beside(3));  // wrong as well, in another way: no refutation
}

// What is too large to be looked at, beside gradients that nothing explains.
TEST(Cause, WhatNobodyKnowsIsOneDefect) {
    std::vector<CounterexampleReport> all{
        counterexample("reference.output", "", "b1 hq1 hkv1 tq1 tk65 d1 f32"),
        counterexample("reference.gradients", "", "b1 hq1 hkv1 tq1 tk1 d1 f32 grad")};
    all[0].diagnosis.cases = 0;
    all[1].diagnosis.backward = true;
    EXPECT_EQ(group_causes(all).size(), 1u);
    all[1].diagnosis.known = true;
    all[1].diagnosis.id = "unscaled";
    EXPECT_EQ(group_causes(all).size(), 2u);
}

// Bounds of a coarser arithmetic are wide: it explains all, or a single case by chance.
TEST(Cause, AStepThatLeavesSomethingOpenIsNone) {
    const std::string line = "b1 hq1 hkv1 tq1 tk65 d1 f32";
    std::vector<CounterexampleReport> all{counterexample("reference.lse", "step_scores_f16", line),
                                          counterexample("reference.decode", "", line)};
    EXPECT_EQ(group_causes(all).size(), 1u);
    EXPECT_FALSE(all[0].diagnosis.known);
    all = {counterexample("reference.lse", "step_scores_f16", line),
           counterexample("reference.decode", "step_scores_f16", line)};
    EXPECT_TRUE(group_causes(all).front().known);
}

TEST(Cause, TheSameDeathIsOneCause) {
    const std::string small = "b1 hq1 hkv1 tq1 tk1 d1 f32";
    std::vector<CounterexampleReport> all{counterexample("masking.causal", "", small),
                                          counterexample("hygiene.bounds", "", small)};
    const auto died_of = [&](std::size_t n, worker::Fault::Kind kind, worker::Fault::Access stray,
                             const std::string& sentence) {
        search::Counterexample& c = all[n].example;
        c.outcome = worker::Outcome::crash;
        c.fault = worker::Fault{};
        c.fault->kind = kind;
        c.fault->stray = stray;
        c.fault->sentence = c.verdict.violation->problem = sentence;
    };
    using enum worker::Fault::Kind;
    using enum worker::Fault::Access;
    died_of(0, read_outside, read, "read 64 bytes past the end of k");
    died_of(1, read_outside, read, "read 4 bytes before the begin of v");
    const std::vector<CauseReport> causes = group_causes(all);
    ASSERT_EQ(causes.size(), 1u);
    EXPECT_EQ(causes[0].lead, id_of(all[1]));
    died_of(1, write_outside, write, "wrote 4 bytes before the begin of v");
    EXPECT_EQ(group_causes(all).size(), 2u);
    // Of a stray access and of a lost GPU each sentence is another, and none of them matters.
    died_of(0, outside_all, write, "each tensor ends");
    EXPECT_EQ(group_causes(all).size(), 1u);
    died_of(0, context_lost, none, "each tensor ends");
    died_of(1, context_lost, none, "each tensor begins");
    EXPECT_EQ(group_causes(all).size(), 1u);
    died_of(0, worker::Fault::Kind::signal, none, "SIGFPE at 0x7f12");
    died_of(1, worker::Fault::Kind::signal, none, "SIGFPE at 0x8a34");
    EXPECT_EQ(group_causes(all).size(), 1u);
    died_of(1, worker::Fault::Kind::signal, none, "SIGILL at 0x8a34");
    EXPECT_EQ(group_causes(all).size(), 2u);
}

}  // namespace
}  // namespace attest::diagnosis
