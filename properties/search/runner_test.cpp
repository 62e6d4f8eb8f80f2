// The campaign: the same result on any number of threads, shards that add up to the whole, an end
// that keeps what was done.

#include <gtest/gtest.h>

#include <unistd.h>
#include <atomic>

#include <set>

#include "properties/search/campaign_test.hpp"

namespace attest::search {
namespace {

/// Everything but the seconds.
std::string summary(const CampaignResult& result) {
    std::string text;
    for (const LawResult& law : result.laws) {
        text += law.property->id + " " + std::string(name(law.verdict.decision)) + " [" +
                law.verdict.reason.text + "] " + std::to_string(law.cases) + " " +
                std::to_string(law.discarded) + " " + std::to_string(law.refused) + " " +
                std::to_string(law.violated) + " " + std::to_string(law.verdict.elements) + "\n";
        for (const CaseRecord& record : law.records)
            text += "  " + std::to_string(record.number) + " " + print(record.tried) + " " +
                    std::string(name(record.verdict.decision)) + "\n";
        if (law.counterexample)
            text += "  smallest " + print(law.counterexample->smallest) + " from " +
                    std::to_string(law.counterexample->found.number) + " " +
                    std::string(name(law.counterexample->confirmed.how)) + "\n";
    }
    return text;
}

TEST(Runner, TheResultDoesNotDependOnTheNumberOfThreads) {
    const auto laws = four_laws();
    for (const PlantedDefect defect :
         {PlantedDefect::wrong, PlantedDefect::crash, PlantedDefect::hang, PlantedDefect::nan}) {
        const KernelPlan plan = plan_with(defect, past_forty);
        const std::string one = summary(run(laws, plan, few_cases(40, 1)));
        EXPECT_NE(one.find("violated"), std::string::npos);
        for (int repeat = 0; repeat < 5; ++repeat)
            ASSERT_EQ(summary(run(laws, plan, few_cases(40, 4))), one);
    }
}

TEST(Runner, ShardsAddUpToTheWhole) {
    const auto laws = four_laws();
    const KernelPlan plan = plan_with(PlantedDefect::wrong);
    const CampaignResult whole = run(laws, plan, few_cases());
    std::map<std::string, std::map<std::int64_t, std::string>> parts;
    for (std::int64_t shard = 0; shard < 3; ++shard) {
        CampaignOptions options = few_cases();
        options.shard_index = shard;
        options.shard_count = 3;
        for (const LawResult& law : run(laws, plan, options).laws)
            for (const CaseRecord& record : law.records) {
                const bool is_new =
                    parts[law.property->id].emplace(record.number, print(record.tried)).second;
                EXPECT_TRUE(is_new) << record.number;
            }
    }
    for (const LawResult& law : whole.laws) {
        EXPECT_EQ(law.records.size(), parts[law.property->id].size());
        for (const CaseRecord& record : law.records)
            EXPECT_EQ(parts[law.property->id][record.number], print(record.tried));
    }
}

TEST(Runner, AViolationIsTheLowestCaseAndIsShrunk) {
    const auto laws = four_laws();
    const CampaignResult result =
        run(laws, plan_with(PlantedDefect::wrong, past_forty), few_cases());
    const LawResult& law = result.laws[0];
    EXPECT_EQ(law.verdict.decision, law::Decision::violated);
    EXPECT_LE(law.violated, 8);
    EXPECT_EQ(law.records.back().verdict.decision,
              law::Decision::violated);  // the eighth was the last
    ASSERT_TRUE(law.counterexample);
    EXPECT_EQ(law.counterexample->confirmed.how, Confirmation::alone);
    EXPECT_EQ(law.counterexample->smallest.problem.len_kv, 41);
    for (const CaseRecord& record : law.records)
        if (record.verdict.decision == law::Decision::violated) {
            EXPECT_EQ(law.counterexample->found.number, record.number);
            break;
        }
    EXPECT_EQ(result.laws[3].verdict.decision,
              law::Decision::holds);  // lengths to 8 never reach it
}

TEST(Runner, NanIsNeverZero) {
    const auto result =
        run(four_laws(), plan_with(PlantedDefect::nan, [](const Problem&) { return true; }),
            few_cases());
    for (const LawResult& law : result.laws) {
        EXPECT_EQ(law.verdict.decision, law::Decision::violated);
        EXPECT_EQ(law.violated, law.cases);
    }
}

/// A precondition that one draw in three meets costs draws, not cases.
TEST(Runner, DiscardedDrawsAreDrawnAgain) {
    law::Property third =
        zero_law("lost.few", {.admits = [](const Problem& p) { return p.len_kv % 3 == 0; }});
    const LawResult law = run({third}, plan_with(PlantedDefect::wrong), few_cases(60)).laws[0];
    EXPECT_EQ(law.verdict.decision, law::Decision::holds);
    EXPECT_GE(law.cases, 58);
    EXPECT_GT(law.discarded, 60);
}

TEST(Runner, OnlyTheClassesOfTheProfileFail) {
    law::Property doubt = zero_law("class.suspect");
    doubt.check = [](const law::Given&) -> law::Plan {
        return law::Judge([](const law::Trial&) {
            law::Violation violation;
            violation.problem = "improbable";
            violation.violation_class = law::ViolationClass::suspect;
            return law::violated(violation);
        });
    };
    CampaignOptions options = few_cases();
    const LawResult mild = run({doubt}, plan_with(PlantedDefect::wrong), options).laws[0];
    EXPECT_EQ(mild.verdict.decision, law::Decision::holds);
    ASSERT_TRUE(mild.verdict.doubt);
    EXPECT_EQ(mild.verdict.doubt->problem, "improbable");
    EXPECT_EQ(mild.violated, 0);
    EXPECT_FALSE(mild.counterexample);
    options.profile.fails.push_back("suspect");
    EXPECT_EQ(run({doubt}, plan_with(PlantedDefect::wrong), options).laws[0].verdict.decision,
              law::Decision::violated);
}

TEST(Runner, AnInterruptionKeepsWhatWasDone) {
    class Interrupter final : public CampaignObserver {
    public:
        void on_case(const law::Property&, const CaseRecord&, double) override {
            if (++seen == 10) flag = 1;
        }
        std::atomic<int> flag{0};
        int seen = 0;
    } observer;
    CampaignOptions options = few_cases();
    options.interrupted = &observer.flag;
    const auto laws = four_laws();
    const CampaignResult result =
        run_laws(laws, factory_of(plan_with(PlantedDefect::wrong)), options, observer);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.laws[0].verdict.decision, law::Decision::inconclusive);
    EXPECT_GE(result.laws[0].cases, 10);
    EXPECT_LE(result.laws[0].cases, 12);
    EXPECT_EQ(result.laws[1].verdict.decision, law::Decision::not_run);
    EXPECT_EQ(result.laws[1].verdict.reason.kind, law::Reason::Kind::interrupted);
}

// Without an end no law would: a run with a budget goes round until it is spent.
TEST(Runner, ABudgetOfTimeIsSharedAmongTheLaws) {
    CampaignOptions options = few_cases();
    options.cases.reset();
    options.seconds = 0.4;
    const CampaignResult result = run(four_laws(), plan_with(PlantedDefect::wrong), options);
    for (const LawResult& law : result.laws) {
        EXPECT_EQ(law.verdict.decision, law::Decision::holds) << law.verdict.reason.text;
        EXPECT_GT(law.cases, 10);
    }
}

/// A run without that end goes on until its ten seconds are spent.
TEST(Runner, UntilFirstEndsABudgetOfTime) {
    CampaignOptions options = few_cases(40, 1);
    options.cases.reset();
    options.seconds = 10;
    options.until_first = true;
    const std::vector<law::Property> laws{
        zero_law("law.wrong"),
        zero_law("law.right", {.scores_max = 64, .len_max = 8, .limited_because = "a test"})};
    const CampaignResult result = run(laws, plan_with(PlantedDefect::wrong, past_forty), options);
    EXPECT_EQ(result.laws[0].verdict.decision, law::Decision::violated);
    EXPECT_NE(result.laws[1].verdict.decision, law::Decision::holds);
}

/// Behind a law that is violated the others are tried by fewer cases, the same with any number of
/// threads; where the number of cases was asked for, by that many.
TEST(Runner, OnceViolatedTheRestIsShort) {
    const std::vector<law::Property> laws{zero_law("law.a"), zero_law("law.b"), zero_law("law.c")};
    for (const int jobs : {1, 2, 4}) {
        CampaignOptions options = few_cases(120, jobs);
        const KernelPlan wrong = plan_with(PlantedDefect::wrong, past_forty);
        const CampaignResult asked = run(laws, wrong, options);
        options.cases.reset();
        options.profile.cases_per_law = 120;
        const CampaignResult short_one = run(laws, wrong, options);
        for (std::size_t i = 0; i < laws.size(); ++i) {
            EXPECT_EQ(asked.laws[i].violated, 8);
            EXPECT_EQ(short_one.laws[i].violated, i == 0 ? 8 : 4);
        }
        const auto seldom = [](const Problem& p) { return p.len_kv % 37 == 5; };
        const CampaignResult rare = run(laws, plan_with(PlantedDefect::wrong, seldom), options);
        EXPECT_EQ(rare.laws[0].cases, 120);
        EXPECT_EQ(rare.laws[0].verdict.decision, law::Decision::violated);
        EXPECT_EQ(rare.laws[1].cases, 40);
        const auto never = [](const Problem&) { return false; };
        const CampaignResult right = run(laws, plan_with(PlantedDefect::wrong, never), options);
        for (const LawResult& law : right.laws) EXPECT_EQ(law.cases, 120);
    }
}

}  // namespace
}  // namespace attest::search
