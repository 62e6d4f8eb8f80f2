// The campaign: the same result on any number of threads, shards that add up to the whole, and
// words for everything that is not a pass.

#include "properties/search/runner.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <atomic>

#include <filesystem>
#include <set>

#include "properties/search/planted_test.hpp"
#include "reference/problem/errors.hpp"

namespace attest {
namespace {

using testing::all_zero;
using testing::Defect;
using testing::full_manifest;
using testing::Plan;
using testing::PlantedKernel;
using testing::zero_law;

SubjectFactory factory_of(const Plan& plan) {
    return [plan]() -> std::unique_ptr<Subject> { return std::make_unique<PlantedKernel>(plan); };
}

CampaignOptions few_cases(std::int64_t cases = 40, int jobs = 2) {
    CampaignOptions options;
    options.kernel.id = "planted";
    options.profile.name = "test";
    options.cases = cases;
    options.jobs = jobs;
    options.seed = 7;
    return options;
}

CampaignResult run(const std::vector<Property>& laws, const Plan& plan,
                   const CampaignOptions& options) {
    CampaignObserver silent;
    return run_laws(laws, factory_of(plan), options, silent);
}

/// Everything but the seconds.
std::string summary(const CampaignResult& result) {
    std::string text;
    for (const LawResult& law : result.laws) {
        text += law.property->id + " " + std::string(name(law.verdict.decision)) + " [" +
                law.verdict.reason + "] " + std::to_string(law.cases) + " " +
                std::to_string(law.discarded) + " " + std::to_string(law.refused) + " " +
                std::to_string(law.violated) + " " + std::to_string(law.verdict.elements) + "\n";
        for (const CaseRecord& record : law.records)
            text += "  " + std::to_string(record.number) + " " + print(record.subject) + " " +
                    std::string(name(record.verdict.decision)) + "\n";
        if (law.counterexample)
            text += "  smallest " + print(law.counterexample->smallest) + " from " +
                    std::to_string(law.counterexample->found.number) + " " +
                    (law.counterexample->confirmed ? "confirmed" : "unconfirmed") + "\n";
    }
    return text;
}

Plan plan_with(Defect defect, std::function<bool(const Problem&)> fails = {}) {
    Plan plan{.manifest = full_manifest(), .defect = defect};
    if (fails) plan.fails = [fails](const Problem& p, const TensorSet&) { return fails(p); };
    return plan;
}

bool past_forty(const Problem& p) {
    return p.len_kv > 40;
}

std::vector<Property> four_laws() {
    return {zero_law("first.any"),
            zero_law("second.causal", {.require = FeatureSet(Feature::causal)}),
            zero_law("third.square", {.square = true}),
            zero_law("fourth.small", {.scores_max = 64, .len_max = 8})};
}

TEST(Runner, TheResultDoesNotDependOnTheNumberOfThreads) {
    const auto laws = four_laws();
    for (const Defect defect : {Defect::wrong, Defect::crash, Defect::hang, Defect::nan}) {
        const Plan plan = plan_with(defect, past_forty);
        const std::string one = summary(run(laws, plan, few_cases(40, 1)));
        EXPECT_NE(one.find("violated"), std::string::npos);
        for (int repeat = 0; repeat < 5; ++repeat)
            ASSERT_EQ(summary(run(laws, plan, few_cases(40, 4))), one);
    }
}

TEST(Runner, ShardsAddUpToTheWhole) {
    const auto laws = four_laws();
    const Plan plan = plan_with(Defect::wrong);
    const CampaignResult whole = run(laws, plan, few_cases());
    std::map<std::string, std::map<std::int64_t, std::string>> parts;
    for (std::int64_t shard = 0; shard < 3; ++shard) {
        CampaignOptions options = few_cases();
        options.shard_index = shard;
        options.shard_count = 3;
        for (const LawResult& law : run(laws, plan, options).laws)
            for (const CaseRecord& record : law.records) {
                const bool is_new =
                    parts[law.property->id].emplace(record.number, print(record.subject)).second;
                EXPECT_TRUE(is_new) << record.number;
            }
    }
    for (const LawResult& law : whole.laws) {
        EXPECT_EQ(law.records.size(), parts[law.property->id].size());
        for (const CaseRecord& record : law.records)
            EXPECT_EQ(parts[law.property->id][record.number], print(record.subject));
    }
}

TEST(Runner, AViolationIsTheLowestCaseAndIsShrunk) {
    const auto laws = four_laws();
    const CampaignResult result = run(laws, plan_with(Defect::wrong, past_forty), few_cases());
    const LawResult& law = result.laws[0];
    EXPECT_EQ(law.verdict.decision, Decision::violated);
    EXPECT_LE(law.violated, 8);
    EXPECT_EQ(law.records.back().verdict.decision, Decision::violated);  // the eighth was the last
    ASSERT_TRUE(law.counterexample);
    EXPECT_TRUE(law.counterexample->confirmed);
    EXPECT_EQ(law.counterexample->smallest.problem.len_kv, 41);
    for (const CaseRecord& record : law.records)
        if (record.verdict.decision == Decision::violated) {
            EXPECT_EQ(law.counterexample->found.number, record.number);
            break;
        }
    EXPECT_EQ(result.laws[3].verdict.decision, Decision::holds);  // lengths to 8 never reach it
}

TEST(Runner, NanIsNeverZero) {
    const auto result =
        run(four_laws(), plan_with(Defect::nan, [](const Problem&) { return true; }), few_cases());
    for (const LawResult& law : result.laws) {
        EXPECT_EQ(law.verdict.decision, Decision::violated);
        EXPECT_EQ(law.violated, law.cases);
    }
}

TEST(Runner, ALawThatSawNothingIsInconclusive) {
    Property never = zero_law("empty.space", {.admits = [](const Problem&) { return false; }});
    Property silent = zero_law("empty.check");
    silent.check = [](const Trial&) { return holds(0); };
    Property absent = zero_law("empty.applies");
    absent.check = [](const Trial&) { return not_applicable("nothing is masked here"); };
    for (const LawResult& law :
         run({never, silent, absent}, plan_with(Defect::wrong), few_cases()).laws) {
        EXPECT_EQ(law.verdict.decision, Decision::inconclusive) << law.property->id;
        EXPECT_EQ(law.cases, 0);
        EXPECT_EQ(law.discarded, 40 * 16);
        EXPECT_NE(law.verdict.reason.find("none of 40 cases"), std::string::npos)
            << law.verdict.reason;
    }
}

TEST(Runner, TooMuchRefusedOrLostIsInconclusiveWithNumbers) {
    Plan plan = plan_with(Defect::wrong);
    plan.refuses = [](const Problem& p) { return p.len_kv > 4; };
    const LawResult refused = run({zero_law("refused.most")}, plan, few_cases()).laws[0];
    EXPECT_EQ(refused.verdict.decision, Decision::inconclusive);
    EXPECT_GT(refused.refused, 0);
    EXPECT_NE(refused.verdict.reason.find("not today"), std::string::npos)
        << refused.verdict.reason;
    EXPECT_EQ(refused.refusals.begin()->second, refused.refused);

    Property rare =
        zero_law("lost.most", {.admits = [](const Problem& p) { return p.len_kv == 77; }});
    const LawResult lost = run({rare}, plan_with(Defect::wrong), few_cases(100)).laws[0];
    EXPECT_EQ(lost.verdict.decision, Decision::inconclusive);
    EXPECT_NE(lost.verdict.reason.find(" of 100 cases could be judged"), std::string::npos)
        << lost.verdict.reason;
}

/// A precondition that one draw in three meets costs draws, not cases.
TEST(Runner, DiscardedDrawsAreDrawnAgain) {
    Property third =
        zero_law("lost.few", {.admits = [](const Problem& p) { return p.len_kv % 3 == 0; }});
    const LawResult law = run({third}, plan_with(Defect::wrong), few_cases(60)).laws[0];
    EXPECT_EQ(law.verdict.decision, Decision::holds);
    EXPECT_GE(law.cases, 58);
    EXPECT_GT(law.discarded, 60);
}

TEST(Runner, ADeathIsShrunkOnceAndMetByTheOtherLaws) {
    std::vector<Property> laws;
    for (int i = 0; i < 20; ++i) laws.push_back(zero_law("law.n" + std::to_string(i)));
    const CampaignResult result = run(laws, plan_with(Defect::crash, past_forty), few_cases(120));
    for (std::size_t i = 0; i < laws.size(); ++i) {
        const LawResult& law = result.laws[i];
        EXPECT_EQ(law.verdict.decision, Decision::violated);
        EXPECT_EQ(law.violated, i == 0 ? 2 : 1);
        ASSERT_TRUE(law.counterexample);
        EXPECT_EQ(law.counterexample->smallest, result.laws[0].counterexample->smallest);
        EXPECT_EQ(law.counterexample->outcome, Outcome::crash);
        EXPECT_EQ(law.verdict.violation->problem,
                  "the kernel crashed: read 4 bytes past the end of k");
        EXPECT_EQ(law.counterexample->evaluations, i == 0 ? law.counterexample->evaluations : 1);
    }
}

/// The limit drops after the first hang: a kernel that always hangs is judged in a few full limits.
TEST(Runner, AKernelThatHangsIsJudgedInSeconds) {
    std::atomic<std::int64_t> waited_ms{0};
    class Slow final : public Subject {
    public:
        explicit Slow(std::atomic<std::int64_t>& waited) : waited_(waited) {}
        const Manifest& manifest() const noexcept override { return manifest_; }
        bool supports(const Problem&, std::string*) override { return true; }
        CallResult forward(const Problem&, const TensorSet&) override {
            waited_ += timeout_.count();
            CallResult result;
            result.outcome = Outcome::hang;
            return result;
        }
        void restart() override {}
        void set_timeout(std::chrono::milliseconds t) noexcept override { timeout_ = t; }

    private:
        Manifest manifest_ = full_manifest();
        std::atomic<std::int64_t>& waited_;
        std::chrono::milliseconds timeout_{0};
    };
    std::vector<Property> laws;
    for (int i = 0; i < 30; ++i) laws.push_back(zero_law("law.n" + std::to_string(i)));
    CampaignObserver silent;
    const CampaignResult result = run_laws(
        laws, [&] { return std::make_unique<Slow>(waited_ms); }, few_cases(120, 2), silent);
    for (std::size_t i = 0; i < laws.size(); ++i) {
        const LawResult& law = result.laws[i];
        EXPECT_EQ(law.verdict.decision, i < 3 ? Decision::violated : Decision::not_run) << i;
        if (i >= 3) continue;
        EXPECT_EQ(law.counterexample->outcome, Outcome::hang);
        EXPECT_TRUE(law.counterexample->confirmed);
    }
    // A few full limits of 10 s (two threads meet it at once, the confirmations), the rest at 0.25
    // s.
    EXPECT_LE(waited_ms, 6 * 10'000 + 30'000);
}

/// It hangs for long rows alone: every law is asked all the same.
TEST(Runner, AKernelThatHangsNowAndThenIsJudgedByEveryLaw) {
    std::vector<Property> laws;
    for (int i = 0; i < 8; ++i) laws.push_back(zero_law("law.n" + std::to_string(i)));
    const CampaignResult result = run(laws, plan_with(Defect::hang, past_forty), few_cases());
    for (const LawResult& law : result.laws) {
        EXPECT_EQ(law.verdict.decision, Decision::violated);
        EXPECT_EQ(law.counterexample->smallest.problem.len_kv, 41);
    }
}

/// Slow once, because something else was; the full limit shows that it returns.
TEST(Runner, ASlowCallIsNoHang) {
    class Sometimes final : public Subject {
    public:
        explicit Sometimes(Plan plan) : kernel_(std::move(plan)) {}
        const Manifest& manifest() const noexcept override { return kernel_.manifest(); }
        bool supports(const Problem& p, std::string* r) override { return kernel_.supports(p, r); }
        CallResult forward(const Problem& p, const TensorSet& inputs) override {
            CallResult result = kernel_.forward(p, inputs);
            if (++calls_ == 5) result.outcome = Outcome::hang;
            return result;
        }
        void restart() override {}
        void set_timeout(std::chrono::milliseconds) noexcept override {}

    private:
        PlantedKernel kernel_;
        int calls_ = 0;
    };
    CampaignObserver silent;
    const auto laws = std::vector{zero_law("slow.once")};
    const CampaignResult result = run_laws(
        laws, [] { return std::make_unique<Sometimes>(plan_with(Defect::wrong)); },
        few_cases(40, 1), silent);
    EXPECT_EQ(result.laws[0].verdict.decision, Decision::inconclusive);
    EXPECT_FALSE(result.laws[0].counterexample);
    EXPECT_NE(result.laws[0].verdict.reason.find("slow once"), std::string::npos);
}

TEST(Runner, OnlyTheClassesOfTheProfileFail) {
    Property doubt = zero_law("class.suspect");
    doubt.check = [](const Trial&) {
        Violation violation;
        violation.problem = "improbable";
        violation.violation_class = ViolationClass::suspect;
        return violated(violation);
    };
    CampaignOptions options = few_cases();
    const LawResult mild = run({doubt}, plan_with(Defect::wrong), options).laws[0];
    EXPECT_EQ(mild.verdict.decision, Decision::inconclusive);
    EXPECT_EQ(mild.verdict.reason, "suspect: improbable");
    options.profile.fails.push_back("suspect");
    EXPECT_EQ(run({doubt}, plan_with(Defect::wrong), options).laws[0].verdict.decision,
              Decision::violated);
}

TEST(Runner, WhatWasNotRunSaysWhy) {
    Property backward = zero_law("needs.backward");
    backward.needs.backward = true;
    CampaignOptions options = few_cases();
    options.profile.laws_excluded = {"slow.*"};
    options.match = {"fast.*", "needs.*"};
    const auto laws =
        std::vector{zero_law("fast.one"), zero_law("slow.one"), zero_law("other.one"), backward};
    const CampaignResult result = run(laws, plan_with(Defect::wrong), options);
    EXPECT_EQ(result.laws[0].verdict.decision, Decision::holds);
    EXPECT_EQ(result.laws[1].verdict.decision, Decision::not_run);
    EXPECT_EQ(result.laws[1].verdict.reason, "not in profile test");
    EXPECT_EQ(result.laws[2].verdict.decision, Decision::not_run);
    EXPECT_EQ(result.laws[2].verdict.reason, "not selected");
    EXPECT_EQ(result.laws[3].verdict.decision, Decision::not_applicable);
    EXPECT_EQ(result.laws[3].verdict.reason, "kernel has no backward");
}

TEST(Runner, AnInterruptionKeepsWhatWasDone) {
    class Interrupter final : public CampaignObserver {
    public:
        void on_case(const Property&, const CaseRecord&, double) override {
            if (++seen == 10) flag = 1;
        }
        std::atomic<int> flag{0};
        int seen = 0;
    } observer;
    CampaignOptions options = few_cases();
    options.interrupted = &observer.flag;
    const auto laws = four_laws();
    const CampaignResult result =
        run_laws(laws, factory_of(plan_with(Defect::wrong)), options, observer);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.laws[0].verdict.decision, Decision::inconclusive);
    EXPECT_GE(result.laws[0].cases, 10);
    EXPECT_LE(result.laws[0].cases, 12);
    EXPECT_EQ(result.laws[1].verdict.decision, Decision::not_run);
    EXPECT_EQ(result.laws[1].verdict.reason, "interrupted before its first case");
}

TEST(Runner, ABudgetOfTimeIsSharedAmongTheLaws) {
    CampaignOptions options = few_cases();
    options.cases.reset();
    options.seconds = 0.4;
    const CampaignResult result = run(four_laws(), plan_with(Defect::wrong), options);
    EXPECT_LE(result.seconds, 2.0);
    for (const LawResult& law : result.laws) {
        EXPECT_EQ(law.verdict.decision, Decision::holds) << law.verdict.reason;
        EXPECT_GT(law.cases, 10);
    }
}

class RunnerStore : public ::testing::Test {
protected:
    std::string directory_ = (std::filesystem::temp_directory_path() /
                              ("attest_runner_test_" + std::to_string(::getpid())))
                                 .string();
    void TearDown() override { std::filesystem::remove_all(directory_); }
};

TEST_F(RunnerStore, FailuresAreKeptAndComeFirstNextTime) {
    const auto laws = std::vector{zero_law("store.one")};
    CampaignOptions options = few_cases();
    options.store = directory_;
    const CampaignResult first = run(laws, plan_with(Defect::wrong, past_forty), options);
    const auto stored = load_failures(directory_);
    ASSERT_EQ(stored.size(), 1u);  // the shrunk one alone
    EXPECT_TRUE(stored[0].shrunk);
    EXPECT_EQ(stored[0].kernel, "planted");
    EXPECT_EQ(stored[0].id, first.laws[0].counterexample->id);

    options.seed = 8;
    const CampaignResult second = run(laws, plan_with(Defect::wrong, past_forty), options);
    EXPECT_EQ(second.laws[0].records.front().number, -1);
    EXPECT_EQ(second.laws[0].records.front().subject, stored[0].subject);
    EXPECT_EQ(second.laws[0].counterexample->found.number, -1);
    EXPECT_EQ(load_failures(directory_).size(), 1u);

    const CampaignResult mended = run(laws, plan_with(Defect::wrong), options);
    EXPECT_EQ(mended.laws[0].verdict.decision, Decision::holds);
    EXPECT_EQ(mended.laws[0].cases, 41);
    EXPECT_EQ(load_failures(directory_).size(), 1u);  // a regression case from now on
}

TEST(Runner, ALawThatThrowsIsOurFaultAndNamesItsCase) {
    Property broken = zero_law("broken.law");
    broken.check = [](const Trial&) -> Verdict { throw std::logic_error("oops"); };
    CampaignObserver silent;
    try {
        run_laws(std::vector{broken}, factory_of(plan_with(Defect::wrong)), few_cases(), silent);
        FAIL() << "nothing was thrown";
    } catch (const InternalError& error) {
        EXPECT_NE(std::string(error.what()).find("broken.law"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("oops"), std::string::npos);
    }
}

TEST(Runner, AKernelThatCannotStartIsReported) {
    CampaignObserver silent;
    const auto laws = four_laws();
    const SubjectFactory none = []() -> std::unique_ptr<Subject> {
        throw BadInput("libx.so: not a plug-in");
    };
    EXPECT_THROW(run_laws(laws, none, few_cases(), silent), BadInput);
}

}  // namespace
}  // namespace attest
