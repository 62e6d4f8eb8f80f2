// Why a law has no verdict: nothing judged, too little, left out.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cmath>

#include "properties/search/campaign_test.hpp"
#include "properties/search/capability.hpp"

namespace attest::search {
namespace {

TEST(NoVerdict, ALawThatSawNothingIsInconclusive) {
    const law::Property never =
        zero_law("empty.space", {.admits = [](const Problem&) { return false; }});
    law::Property silent = zero_law("empty.check");
    silent.check = [](const law::Given&) -> law::Plan {
        return law::Judge([](const law::Trial&) { return law::nothing_compared("still"); });
    };
    const std::vector<law::Property> laws = {never, silent};
    const CampaignResult result = run(laws, plan_with(PlantedDefect::wrong), few_cases());
    for (const LawResult& law : result.laws) {
        EXPECT_EQ(law.verdict.decision, law::Decision::inconclusive) << law.property->id;
        EXPECT_EQ(law.cases, 0);
    }
    // A draw that is no case costs nothing; a case that says nothing costs calls. A thousand that
    // all came to nothing are enough.
    for (const auto& [law, draws] : {std::pair(0, 64), {1, 32}}) {
        const LawResult& result_of = result.laws[static_cast<std::size_t>(law)];
        EXPECT_EQ(result_of.discarded, 1024);
        const std::string said = fmt::format("none of {} cases", 1024 / draws);
        EXPECT_NE(result_of.verdict.reason.text.find(said), std::string::npos)
            << result_of.verdict.reason.text;
    }
}

// One case was of use: the law is asked for all of its cases.
TEST(NoVerdict, ALawThatCouldUseACaseIsTriedToTheEnd) {
    law::Property once = zero_law("empty.but_one");
    static std::atomic<int> calls{0};
    once.check = [](const law::Given&) -> law::Plan {
        if (calls++ == 0) return [](const law::Trial&) { return law::holds(1); };
        return law::not_applicable("no other case");
    };
    const LawResult law = run({once}, plan_with(PlantedDefect::wrong), few_cases()).laws[0];
    EXPECT_EQ(law.cases, 1);
    EXPECT_EQ(law.discarded, 39 * 32);
}

TEST(NoVerdict, ALawThatNeverAppliesSaysSo) {
    law::Property absent = zero_law("empty.applies");
    absent.check = [](const law::Given&) -> law::Plan {
        return law::not_applicable("the kernel has no mask");
    };
    const LawResult law = run({absent}, plan_with(PlantedDefect::wrong), few_cases()).laws[0];
    EXPECT_EQ(law.verdict.decision, law::Decision::not_applicable);
    EXPECT_EQ(law.verdict.reason.text, "the kernel has no mask");
}

TEST(NoVerdict, ALawWhoseCasesAreCompleteHoldsBesideRefusals) {
    KernelPlan plan = plan_with(PlantedDefect::wrong);
    plan.refuses = [](const Problem& p) { return p.len_q % 2 == 0; };
    const LawResult law = run({zero_law("refused.half")}, plan, few_cases()).laws[0];
    EXPECT_EQ(law.verdict.decision, law::Decision::holds) << law.verdict.reason.text;
    EXPECT_EQ(law.cases, 40);
    EXPECT_GT(law.refused, 13);  // more than a quarter
}

// A backward of one gradient shows some laws nothing; of a law of forward that is no excuse.
TEST(NoVerdict, ALawOfGradientsThatAreNotReturnedDoesNotApply) {
    law::Property backward = zero_law("empty.backward"), forward = zero_law("empty.forward");
    backward.needs.backward = true;
    backward.check = forward.check = [](const law::Given&) -> law::Plan {
        return [](const law::Trial&) { return law::nothing_compared("nothing is bounded"); };
    };
    KernelPlan plan = plan_with(PlantedDefect::wrong);
    const auto decisions = [&](std::vector<Role> gradients) {
        plan.manifest.gradients = std::move(gradients);
        const CampaignResult result = run({backward, forward}, plan, few_cases());
        return std::pair(result.laws[0].verdict.decision, result.laws[1].verdict.decision);
    };
    using enum law::Decision;
    EXPECT_EQ(decisions({Role::d_q}), std::pair(not_applicable, inconclusive));
    EXPECT_EQ(decisions({Role::d_q, Role::d_k, Role::d_v}), std::pair(inconclusive, inconclusive));
}

TEST(NoVerdict, OfTwoNaNsNoRelationIsClaimed) {
    law::Property law = zero_law("nan.both");
    law.check = [](const law::Given&) -> law::Plan {
        return [](const law::Trial&) {
            law::Violation v;
            v.problem = "query 0 reads key 1, which it may not";
            v.element_name = "output of query 0";
            v.expected = v.observed = std::nan("");
            return law::violated(std::move(v), 1);
        };
    };
    const KernelPlan plan = plan_with(PlantedDefect::wrong);
    const LawResult result = run({law}, plan, few_cases()).laws[0];
    ASSERT_TRUE(result.verdict.violation);
    EXPECT_EQ(result.verdict.violation->problem, "output of query 0 is NaN");
}

TEST(NoVerdict, ALawOfWhichTheKernelTakesNothingDoesNotApply) {
    const law::Property both =
        zero_law("refused.both", {.require = FeatureSet(Feature::softcap, Feature::causal)});
    KernelPlan plan = plan_with(PlantedDefect::wrong);
    plan.refuses = [](const Problem& p) { return p.softcap != 0 && p.mask.causal; };
    const CampaignResult together = run({both}, plan, few_cases());
    EXPECT_EQ(together.laws[0].verdict.decision, law::Decision::not_applicable);
    EXPECT_EQ(together.laws[0].verdict.reason.text, "kernel refuses causal with softcap");
    ASSERT_EQ(together.narrowed.size(), 1u);
    EXPECT_TRUE(together.narrowed[0].starts_with(
        "refuses causal with softcap (not today), whenever it was asked: "))
        << together.narrowed[0];
    // What is refused in its plainest form is not drawn, and said once.
    plan.refuses = [](const Problem& p) { return p.softcap != 0; };
    const CampaignResult refused = run({both}, plan, few_cases());
    EXPECT_EQ(refused.laws[0].verdict.decision, law::Decision::not_applicable);
    EXPECT_EQ(refused.laws[0].verdict.reason.text, "kernel declares and refuses softcap");
    EXPECT_EQ(refused.laws[0].refused, 0);
    ASSERT_EQ(refused.narrowed.size(), 1u);
    EXPECT_EQ(refused.narrowed[0], "features: refuses softcap, which it declares (not today)");
}

TEST(NoVerdict, ALawOfWhichANarrowKernelTakesFewDoesNotApply) {
    law::Property rare = zero_law("lost.narrow");
    rare.check = [](const law::Given&) -> law::Plan {
        return law::Judge([](const law::Trial& trial) {
            const Problem& p = trial.problem();
            return law::holds(p.len_kv == 176 && p.len_q % 8 == 3 ? 1 : 0);
        });
    };
    KernelPlan plan = plan_with(PlantedDefect::wrong);
    plan.refuses = [](const Problem& p) { return p.len_kv % 16 != 0; };
    const LawResult law = run({rare}, plan, few_cases(100)).laws[0];
    EXPECT_EQ(law.verdict.decision, law::Decision::not_applicable) << law.cases;
    EXPECT_NE(law.verdict.reason.text.find(" of 100 cases"), std::string::npos)
        << law.verdict.reason.text;
}

TEST(NoVerdict, TooMuchRefusedOrLostIsInconclusiveWithNumbers) {
    KernelPlan plan = plan_with(PlantedDefect::wrong);
    plan.refuses = [](const Problem& p) { return p.len_kv > 4; };
    const LawResult refused = run({zero_law("refused.most")}, plan, few_cases()).laws[0];
    EXPECT_EQ(refused.verdict.decision, law::Decision::inconclusive);
    EXPECT_GT(refused.refused, 0);
    EXPECT_NE(refused.verdict.reason.text.find("not today"), std::string::npos)
        << refused.verdict.reason.text;
    EXPECT_EQ(refused.refusals.begin()->second, refused.refused);

    law::Property rare =
        zero_law("lost.most", {.admits = [](const Problem& p) { return p.len_kv == 77; }});
    const LawResult lost = run({rare}, plan_with(PlantedDefect::wrong), few_cases(100)).laws[0];
    EXPECT_EQ(lost.verdict.decision, law::Decision::inconclusive);
    EXPECT_NE(lost.verdict.reason.text.find(" of 100 cases could be judged"), std::string::npos)
        << lost.verdict.reason.text;
}

TEST(NoVerdict, WhatWasNotRunSaysWhy) {
    law::Property backward = zero_law("needs.backward");
    backward.needs.backward = true;
    CampaignOptions options = few_cases();
    options.profile.laws_excluded = {"slow.*"};
    options.match = {"fast.*", "needs.*"};
    const auto laws =
        std::vector{zero_law("fast.one"), zero_law("slow.one"), zero_law("other.one"), backward};
    const CampaignResult result = run(laws, plan_with(PlantedDefect::wrong), options);
    EXPECT_EQ(result.laws[0].verdict.decision, law::Decision::holds);
    EXPECT_EQ(result.laws[1].verdict.decision, law::Decision::not_run);
    EXPECT_EQ(result.laws[1].verdict.reason.text, "not in profile test");
    EXPECT_EQ(result.laws[1].verdict.reason.kind, law::Reason::Kind::not_in_profile);
    EXPECT_EQ(result.laws[2].verdict.decision, law::Decision::not_run);
    EXPECT_EQ(result.laws[2].verdict.reason.text, "not selected");
    EXPECT_EQ(result.laws[2].verdict.reason.kind, law::Reason::Kind::not_selected);
    EXPECT_EQ(result.laws[3].verdict.decision, law::Decision::not_applicable);
    EXPECT_EQ(result.laws[3].verdict.reason.text, "kernel has no backward");
    EXPECT_EQ(result.laws[3].verdict.reason.kind, law::Reason::Kind::kernel_lacks);
}

TEST(NoVerdict, WhatTheKernelDoesNotReturnIsNoFault) {
    kernel::Manifest manifest = full_manifest();
    manifest.gradients = {Role::d_q};
    law::Property law = zero_law("needs.gradients");
    law.needs = {.backward = true, .d_q = true};
    EXPECT_EQ(why_not_applicable(law, declared_capability(manifest)), std::nullopt);
    law.needs.d_v = true;
    EXPECT_EQ(why_not_applicable(law, declared_capability(manifest)), "kernel returns no d_v");
}

/// What a machine without memory does to a kernel is not held against it, costs a law two cases,
/// and where it meets every case of three laws, the others none.
TEST(NoVerdict, AKernelThatTheSystemHadNoMemoryForIsInconclusive) {
    const auto laws = std::vector{zero_law("memory.1"), zero_law("memory.2"), zero_law("memory.3"),
                                  zero_law("memory.4")};
    const auto always = [](const Problem&) { return true; };
    const CampaignResult none =
        run(laws, plan_with(PlantedDefect::no_memory, always), few_cases(40, 1));
    for (int n = 0; n < 3; ++n) {
        EXPECT_EQ(none.laws[n].verdict.decision, law::Decision::inconclusive);
        EXPECT_EQ(none.laws[n].verdict.reason.kind, law::Reason::Kind::no_memory);
        EXPECT_EQ(none.laws[n].cases, 2);
        EXPECT_FALSE(none.laws[n].counterexample);
    }
    EXPECT_EQ(none.laws[3].verdict.reason.kind, law::Reason::Kind::always_dead);
    const CampaignResult some =
        run(laws, plan_with(PlantedDefect::no_memory, past_forty), few_cases(40, 1));
    EXPECT_EQ(some.laws[3].verdict.reason.kind, law::Reason::Kind::no_memory);
}

// A law of two threads would hold on one processor, whatever they share.
TEST(NoVerdict, TwoThreadsAreNotJudgedOnOneProcessor) {
    auto concurrent = zero_law("needs.two");
    concurrent.needs.concurrent = true;
    KernelPlan plan = plan_with(PlantedDefect::wrong, past_forty);
    plan.manifest.numerics.concurrent = true;
    cpu_set_t mine, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ::sched_setaffinity(0, sizeof one, &one);
    const auto verdict = [&] { return run({concurrent}, plan, few_cases()).laws[0].verdict; };
    const law::Verdict on_one = verdict();
    ::sched_setaffinity(0, sizeof mine, &mine);
    EXPECT_EQ(on_one.decision, law::Decision::inconclusive);
    EXPECT_EQ(on_one.reason.kind, law::Reason::Kind::machine_lacks);
    const bool several = CPU_COUNT(&mine) > 1;
    EXPECT_EQ(verdict().decision, several ? law::Decision::violated : law::Decision::inconclusive);
}

}  // namespace
}  // namespace attest::search
