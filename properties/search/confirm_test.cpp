// A failure is a violation once a fresh process shows it again: by itself, after what ran before,
// or now and then; and what nothing repeats accuses nobody.

#include "properties/search/confirm.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "properties/search/campaign_test.hpp"
#include "properties/search/store.hpp"
#include "reference/problem/counter.hpp"

namespace attest::search {
namespace {

/// What the kernels of one test share: nothing that a process would not share with its successors.
struct Surroundings {
    std::int64_t processes = 0, calls = 0;
    worker::Processors processors = worker::Processors::all;
    bool random = false;         ///< a wrong answer is another one at each call
    bool crashes_first = false;  ///< the first process crashes where later ones answer wrongly
};

/// Answers zeros but where `wrong` says so, of what its process has seen and the world is like.
class Moody final : public Kernel {
public:
    struct Process {
        std::int64_t number = 0, calls = 0;
        bool saw_long = false;  ///< more than sixty keys, in an earlier call
        bool one_processor = false;
    };
    using Wrong = std::function<bool(const Process&, Surroundings&, const Problem&)>;
    Moody(Surroundings& world, Wrong wrong) : world_(world), wrong_(std::move(wrong)) { restart(); }

    const kernel::Manifest& manifest() const noexcept override { return right_.manifest(); }
    bool supports(const Problem& p, std::string* r) override { return right_.supports(p, r); }
    worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
        ++process_.calls;
        ++world_.calls;
        const bool fails = wrong_(process_, world_, p);
        process_.saw_long = process_.saw_long || p.len_kv > 60;
        if (!fails) return right_.forward(p, inputs);
        if (world_.crashes_first && process_.number == 1) return crashing_.forward(p, inputs);
        worker::CallResult result = failing_.forward(p, inputs);
        Tensor& o = result.outputs[Role::o];
        if (world_.random) o.set(o.size() - 1, static_cast<double>(1 + world_.calls % 1000));
        return result;
    }
    void restart() override {
        process_ = {};
        process_.number = ++world_.processes;
        process_.one_processor = processors_ == worker::Processors::one;
    }
    void use_processors(worker::Processors which) noexcept override { processors_ = which; }
    void set_timeout(std::chrono::milliseconds) noexcept override {}

private:
    PlantedKernel right_{plan_with(PlantedDefect::wrong)};
    PlantedKernel failing_{plan_with(PlantedDefect::wrong, [](const Problem&) { return true; })};
    PlantedKernel crashing_{plan_with(PlantedDefect::crash, [](const Problem&) { return true; })};
    Surroundings& world_;
    Wrong wrong_;
    Process process_;
    worker::Processors processors_ = worker::Processors::all;
};

class Confirm : public ::testing::Test {
protected:
    LawResult judge(const Moody::Wrong& wrong, std::int64_t cases = 60) {
        return std::move(judge_all(wrong, cases)[0]);
    }
    std::vector<LawResult> judge_all(const Moody::Wrong& wrong, std::int64_t cases = 60) {
        CampaignObserver silent;
        CampaignOptions options = few_cases(cases, 1);
        options.store = directory_;
        const auto make = [&]() -> std::unique_ptr<Kernel> {
            return std::make_unique<Moody>(world_, wrong);
        };
        return run_laws(laws_, make, options, silent).laws;
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    Surroundings world_;
    std::vector<law::Property> laws_{zero_law("confirm.law")};
    std::string directory_ = (std::filesystem::temp_directory_path() /
                              ("attest_confirm_test_" + std::to_string(::getpid())))
                                 .string();
};

TEST_F(Confirm, ByItself) {
    const LawResult law =
        judge([](const auto&, Surroundings&, const Problem& p) { return past_forty(p); });
    ASSERT_TRUE(law.counterexample);
    EXPECT_EQ(law.counterexample->confirmed.how, Confirmation::alone);
    EXPECT_EQ(law.counterexample->confirmed.alone, (Replays{1, 1}));
    EXPECT_EQ(law.counterexample->smallest.problem.len_kv, 41);
}

/// Its process remembers a long case; alone every case is right.
TEST_F(Confirm, AfterWhatRanBefore) {
    const LawResult law = judge([](const Moody::Process& process, Surroundings&, const Problem&) {
        return process.saw_long;
    });
    EXPECT_EQ(law.verdict.decision, law::Decision::violated);
    ASSERT_TRUE(law.counterexample);
    const Confirmed& confirmed = law.counterexample->confirmed;
    EXPECT_EQ(confirmed.how, Confirmation::sequence);
    EXPECT_EQ(confirmed.alone, (Replays{0, 20}));
    ASSERT_EQ(confirmed.before.size(), 1u);  // what is not needed was left out
    EXPECT_GT(confirmed.before[0].tried.problem.len_kv, 60);
    EXPECT_EQ(confirmed.before[0].law, "confirm.law");
    const auto stored = load_failures(directory_);
    ASSERT_EQ(stored.size(), 1u);
    EXPECT_EQ(stored[0].before, confirmed.before);
    EXPECT_FALSE(stored[0].shrunk);
}

/// Two long cases are needed, with others between them.
TEST_F(Confirm, AfterTwoThatRanBefore) {
    std::int64_t longs = 0, process = 0;
    const LawResult law = judge([&](const Moody::Process& now, Surroundings&, const Problem& p) {
        if (process != now.number) longs = 0;
        process = now.number;
        longs += p.len_kv > 60;
        return longs > 2;
    });
    ASSERT_TRUE(law.counterexample);
    EXPECT_EQ(law.counterexample->confirmed.how, Confirmation::sequence);
    EXPECT_GE(law.counterexample->confirmed.before.size(), 2u);
    EXPECT_LE(law.counterexample->confirmed.before.size(), 3u);
}

/// The state of its process led the shrinking astray; the case as found fails by itself.
TEST_F(Confirm, ByItselfThoughItsProcessWasSpoilt) {
    const LawResult law = judge([](const Moody::Process& process, Surroundings&, const Problem& p) {
        return past_forty(p) || (process.calls > 30 && process.number == 1);
    });
    ASSERT_TRUE(law.counterexample);
    EXPECT_EQ(law.counterexample->confirmed.how, Confirmation::alone);
    EXPECT_EQ(law.counterexample->smallest.problem.len_kv, 41);
}

TEST_F(Confirm, InSomeProcesses) {
    const LawResult law = judge([](const Moody::Process& process, Surroundings&, const Problem& p) {
        return past_forty(p) && process.number % 3 == 1;
    });
    EXPECT_EQ(law.verdict.decision, law::Decision::violated);
    ASSERT_TRUE(law.counterexample);
    EXPECT_TRUE(is_proven(law.counterexample->confirmed.how));
    EXPECT_NE(law.counterexample->confirmed.how, Confirmation::sequence);
}

TEST_F(Confirm, OnSeveralProcessorsAlone) {
    const LawResult law =
        judge([](const Moody::Process& process, Surroundings& world, const Problem& p) {
            // The process in which it is found fails, then every fourth that has all processors.
            const bool unlucky = process.number == 1 || world.processes % 4 == 0;
            return past_forty(p) && unlucky && !process.one_processor;
        });
    EXPECT_EQ(law.verdict.decision, law::Decision::violated);
    ASSERT_TRUE(law.counterexample);
    const Confirmed& confirmed = law.counterexample->confirmed;
    EXPECT_EQ(confirmed.how, Confirmation::schedule);
    EXPECT_GT(confirmed.alone.failed, 0);
    EXPECT_LT(confirmed.alone.failed, confirmed.alone.of);
    EXPECT_EQ(confirmed.one_processor.failed, 0);
    EXPECT_GE(confirmed.one_processor.of, 7);
}

/// What an earlier law's failure was proven to depend on is tried first, in fewer processes.
TEST_F(Confirm, ALaterLawByWhatIsKnown) {
    laws_.push_back(zero_law("confirm.later"));
    std::vector<LawResult> laws = judge_all([](const Moody::Process& process, Surroundings&,
                                               const Problem&) { return process.saw_long; });
    ASSERT_TRUE(laws[0].counterexample && laws[1].counterexample);
    EXPECT_EQ(laws[0].counterexample->confirmed.alone, (Replays{0, 20}));
    EXPECT_EQ(laws[1].counterexample->confirmed.alone, (Replays{0, 3}));
    EXPECT_EQ(laws[1].counterexample->confirmed.how, Confirmation::sequence);
    EXPECT_EQ(laws[1].counterexample->confirmed.before.size(), 1u);
    laws = judge_all([](const Moody::Process& process, Surroundings& world, const Problem& p) {
        const bool unlucky = process.calls > 20 || world.processes % 4 == 0;
        return past_forty(p) && unlucky && !process.one_processor;
    });
    ASSERT_TRUE(laws[0].counterexample && laws[1].counterexample);
    EXPECT_EQ(laws[0].counterexample->confirmed.how, Confirmation::schedule);
    EXPECT_EQ(laws[1].counterexample->confirmed.how, Confirmation::alone);
    const Replays alone = laws[1].counterexample->confirmed.alone;
    EXPECT_TRUE(alone.failed == 1 || alone.failed + 1 == alone.of) << alone.failed;
    EXPECT_LT(alone.failed, alone.of);
    EXPECT_EQ(laws[1].counterexample->confirmed.one_processor, Replays{});
}

/// It answers one case wrongly, once, and later others, now and then.
TEST_F(Confirm, ByAnotherCaseOfTheLaw) {
    Problem found;
    const LawResult law = judge([&](const auto&, Surroundings& world, const Problem& p) {
        if (world.calls == 17) found = p;
        return world.calls == 17 || (world.processes > 1 && world.processes % 3 == 0 && p != found);
    });
    EXPECT_EQ(law.verdict.decision, law::Decision::violated);
    ASSERT_TRUE(law.counterexample);
    const Confirmed& confirmed = law.counterexample->confirmed;
    EXPECT_EQ(confirmed.how, Confirmation::elsewhere);
    EXPECT_GT(confirmed.alone.failed, 0);
    EXPECT_LT(confirmed.alone.failed, confirmed.alone.of);
    EXPECT_EQ(law.counterexample->found.number, 16);
    EXPECT_NE(law.counterexample->smallest, law.counterexample->found.tried);
}

/// Random numbers in some calls: what is small is not sought for long, and proven all the same.
TEST_F(Confirm, OfOtherAnswersAtEachCall) {
    world_.random = true;
    const LawResult law = judge([](const auto&, Surroundings& world, const Problem& p) {
        return counter_bits(5, 0, static_cast<std::uint64_t>(world.calls)) % 4 != 0 &&
               past_forty(p);
    });
    EXPECT_EQ(law.verdict.decision, law::Decision::violated);
    ASSERT_TRUE(law.counterexample);
    EXPECT_TRUE(is_proven(law.counterexample->confirmed.how));
    EXPECT_LE(law.counterexample->evaluations, 150);
}

/// It crashed once, and by itself the case has a wrong answer each time: that is proven.
TEST_F(Confirm, InAnotherWay) {
    world_.crashes_first = true;
    const LawResult law =
        judge([](const auto&, Surroundings&, const Problem& p) { return past_forty(p); });
    EXPECT_EQ(law.verdict.decision, law::Decision::violated);
    ASSERT_TRUE(law.counterexample);
    EXPECT_EQ(law.counterexample->confirmed.how, Confirmation::alone);
    EXPECT_EQ(law.counterexample->outcome, worker::Outcome::ok);
    EXPECT_EQ(law.counterexample->smallest.problem.len_kv, 41);
}

/// Cosmic rays, memory that fails, a race lost once.
TEST_F(Confirm, WhatNothingRepeatsIsNoViolation) {
    const LawResult law = judge([](const auto&, Surroundings& world, const Problem&) {
        return world.calls == 17 || world.calls == 31;
    });
    EXPECT_EQ(law.verdict.decision, law::Decision::inconclusive);
    EXPECT_EQ(law.verdict.reason.kind, law::Reason::Kind::flaky);
    EXPECT_EQ(law.verdict.reason.text, "failed 2 of 60 cases, 0 of 20 replays in fresh processes");
    ASSERT_TRUE(law.counterexample);
    EXPECT_EQ(law.counterexample->confirmed.how, Confirmation::flaky);
    EXPECT_EQ(law.counterexample->found.number, 16);
    EXPECT_EQ(load_failures(directory_).size(), 1u);  // kept, for whoever looks further
}

/// Cut before it could be shrunk, and tried again all the same.
TEST_F(Confirm, WhatWasCutIsTriedOnce) {
    class Interrupter final : public CampaignObserver {
    public:
        void on_violation(const law::Property&, const CaseRecord&) override { flag = level; }
        std::atomic<int> flag{0};
        int level = 1;
    };
    for (const int level : {1, 2}) {
        Interrupter observer;
        observer.level = level;
        CampaignOptions options = few_cases(60, 1);
        options.interrupted = &observer.flag;
        const auto make = [&]() -> std::unique_ptr<Kernel> {
            return std::make_unique<Moody>(
                world_, [](const auto&, Surroundings&, const Problem& p) { return past_forty(p); });
        };
        const CampaignResult result = run_laws(laws_, make, options, observer);
        const LawResult& law = result.laws[0];
        ASSERT_TRUE(law.counterexample);
        EXPECT_EQ(law.counterexample->confirmed.how,
                  level == 1 ? Confirmation::alone : Confirmation::none);
        EXPECT_EQ(law.verdict.decision,
                  level == 1 ? law::Decision::violated : law::Decision::inconclusive);
        EXPECT_EQ(law.verdict.reason.kind,
                  level == 1 ? law::Reason::Kind::none : law::Reason::Kind::interrupted);
    }
}

}  // namespace
}  // namespace attest::search
