// Kernels that do not answer: each is a verdict, reached in bounded time, and none stops the
// campaign.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "properties/search/campaign_test.hpp"
#include "properties/search/time_limit.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {
namespace {

TEST(Runner, ADeathIsShrunkOnceAndMetByTheOtherLaws) {
    std::vector<law::Property> laws;
    for (int i = 0; i < 20; ++i) laws.push_back(zero_law("law.n" + std::to_string(i)));
    const CampaignResult result =
        run(laws, plan_with(PlantedDefect::crash, past_forty), few_cases(120));
    for (std::size_t i = 0; i < laws.size(); ++i) {
        const LawResult& law = result.laws[i];
        EXPECT_EQ(law.verdict.decision, law::Decision::violated);
        EXPECT_EQ(law.violated, i == 0 ? 2 : 1);
        ASSERT_TRUE(law.counterexample);
        EXPECT_EQ(law.counterexample->smallest, result.laws[0].counterexample->smallest);
        EXPECT_EQ(law.counterexample->confirmed.how, Confirmation::alone);
        EXPECT_EQ(law.counterexample->outcome, worker::Outcome::crash);
        EXPECT_EQ(law.verdict.violation->problem,
                  "the kernel crashed: read 4 bytes past the end of k");
        EXPECT_EQ(law.counterexample->evaluations, i == 0 ? law.counterexample->evaluations : 1);
    }
}

/// The limit drops after the first hang: a kernel that always hangs is judged in a few full limits.
TEST(Runner, AKernelThatHangsIsJudgedInSeconds) {
    std::atomic<std::int64_t> waited_ms{0};
    class Slow final : public Kernel {
    public:
        explicit Slow(std::atomic<std::int64_t>& waited) : waited_(waited) {}
        const kernel::Manifest& manifest() const noexcept override { return manifest_; }
        bool supports(const Problem&, std::string*) override { return true; }
        worker::CallResult forward(const Problem&, const TensorSet&) override {
            waited_ += std::min(timeout_, silence_).count();
            worker::CallResult result;
            result.outcome = worker::Outcome::hang;
            return result;
        }
        void restart() override {}
        void set_timeout(std::chrono::milliseconds t) noexcept override { timeout_ = t; }
        void set_silence(std::chrono::milliseconds t) noexcept override { silence_ = t; }

    private:
        kernel::Manifest manifest_ = full_manifest();
        std::atomic<std::int64_t>& waited_;
        std::chrono::milliseconds timeout_{0}, silence_{0};
    };
    std::vector<law::Property> laws;
    for (int i = 0; i < 30; ++i) laws.push_back(zero_law("law.n" + std::to_string(i)));
    CampaignObserver silent;
    const CampaignResult result = run_laws(
        laws, [&] { return std::make_unique<Slow>(waited_ms); }, few_cases(120, 1), silent);
    for (std::size_t i = 0; i < laws.size(); ++i) {
        const LawResult& law = result.laws[i];
        EXPECT_EQ(law.verdict.decision, i < 3 ? law::Decision::violated : law::Decision::not_run)
            << i;
        if (i >= 3) continue;
        EXPECT_EQ(law.counterexample->outcome, worker::Outcome::hang);
        EXPECT_EQ(law.counterexample->confirmed.how,
                  i == 0 ? Confirmation::alone : Confirmation::alike);  // the case as found
    }
    // It shows no sign of life: 2.5 s of the first call, 6 s of the one that decides, 2 s to
    // confirm the smallest case; the rest waits 0.2 s a call. One thread: two would meet the hang
    // at once or one after the other, as the machine likes.
    EXPECT_LE(waited_ms, 15'000);
}

/// Each crash costs the start of a process; what crashes now and then is asked by every law.
TEST(Runner, AKernelThatAlwaysCrashesIsJudgedByAFewLaws) {
    std::vector<law::Property> laws;
    for (int i = 0; i < 12; ++i) laws.push_back(zero_law("law.n" + std::to_string(i)));
    const CampaignResult always = run(
        laws, plan_with(PlantedDefect::crash, [](const Problem&) { return true; }), few_cases());
    const CampaignResult some = run(laws, plan_with(PlantedDefect::crash, past_forty), few_cases());
    for (std::size_t i = 0; i < laws.size(); ++i) {
        EXPECT_EQ(always.laws[i].verdict.decision,
                  i < 8 ? law::Decision::violated : law::Decision::not_run)
            << i;
        EXPECT_EQ(some.laws[i].verdict.decision, law::Decision::violated) << i;
    }
}

/// It hangs for long rows alone: every law is asked all the same.
TEST(Runner, AKernelThatHangsNowAndThenIsJudgedByEveryLaw) {
    std::vector<law::Property> laws;
    for (int i = 0; i < 8; ++i) laws.push_back(zero_law("law.n" + std::to_string(i)));
    const CampaignResult result =
        run(laws, plan_with(PlantedDefect::hang, past_forty), few_cases());
    for (const LawResult& law : result.laws) {
        EXPECT_EQ(law.verdict.decision, law::Decision::violated);
        EXPECT_EQ(law.counterexample->outcome, worker::Outcome::hang);
    }
    EXPECT_EQ(result.laws[0].counterexample->smallest.problem.len_kv, 41);
}

/// Its fifth call takes longer than the limit, as one that compiles does; then it is fast again.
class SlowOnce final : public Kernel {
public:
    const kernel::Manifest& manifest() const noexcept override { return kernel_.manifest(); }
    bool supports(const Problem& p, std::string* r) override { return kernel_.supports(p, r); }
    worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
        worker::CallResult result = kernel_.forward(p, inputs);
        limits.push_back(timeout_);
        if (++calls_ == 5) result.outcome = worker::Outcome::hang;
        return result;
    }
    void restart() override {}
    void set_timeout(std::chrono::milliseconds timeout) noexcept override { timeout_ = timeout; }

    static inline std::vector<std::chrono::milliseconds> limits;

private:
    PlantedKernel kernel_{plan_with(PlantedDefect::wrong)};
    int calls_ = 0;
    std::chrono::milliseconds timeout_{0};
};

TEST(Runner, ASlowCallIsNoHang) {
    CampaignObserver silent;
    SlowOnce::limits.clear();
    const auto laws = std::vector{zero_law("slow.once")};
    const CampaignResult result = run_laws(
        laws, [] { return std::make_unique<SlowOnce>(); }, few_cases(40, 1), silent);
    EXPECT_EQ(result.laws[0].verdict.decision, law::Decision::holds);
    EXPECT_EQ(result.laws[0].cases, 40);
    EXPECT_FALSE(result.laws[0].counterexample);
    ASSERT_EQ(SlowOnce::limits.size(), 41u);         // the fifth twice
    EXPECT_GE(SlowOnce::limits[0].count(), 30'000);  // the first of a process
    EXPECT_LT(SlowOnce::limits[4].count(), 11'000);
    EXPECT_GE(SlowOnce::limits[5].count(), 30'000);  // the same case once more
    EXPECT_LT(SlowOnce::limits[6].count(), 11'000);
}

/// What was found before it threw stands.
TEST(Runner, ALawThatThrowsIsOurFaultAndNamesItsCase) {
    law::Property broken = zero_law("broken.law");
    broken.check = [](const law::Given&) -> law::Plan { throw std::logic_error("oops"); };
    CampaignObserver silent;
    const std::vector laws{zero_law("first.law"), broken, zero_law("last.law")};
    const CampaignResult result = run_laws(
        laws, factory_of(plan_with(PlantedDefect::wrong, past_forty)), few_cases(), silent);
    EXPECT_EQ(result.laws[0].verdict.decision, law::Decision::violated);
    EXPECT_TRUE(result.laws[0].counterexample);
    EXPECT_NE(result.laws[2].verdict.decision, law::Decision::holds);
    EXPECT_TRUE(result.interrupted);
    ASSERT_TRUE(result.error);
    try {
        std::rethrow_exception(result.error);
    } catch (const InternalError& error) {
        EXPECT_NE(std::string(error.what()).find("broken.law"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("oops"), std::string::npos);
    }
}

/// Dies in supports() past forty keys, and in forward() is gone for good at the hundredth call.
class Unwell final : public Kernel {
public:
    const kernel::Manifest& manifest() const noexcept override { return kernel_.manifest(); }
    bool supports(const Problem& p, std::string* r) override {
        if (!past_forty(p)) return kernel_.supports(p, r);
        worker::CallResult died;
        died.outcome = worker::Outcome::crash;
        died.fault.emplace().sentence = "wrote to address 0x8 inside supports()";
        throw worker::KernelDied("planted", died);
    }
    worker::CallResult forward(const Problem& p, const TensorSet& inputs) override {
        if (++calls > calls_max) throw worker::KernelGone("planted: cannot be loaded", {});
        return kernel_.forward(p, inputs);
    }
    void restart() override {}
    void set_timeout(std::chrono::milliseconds) noexcept override {}

    static inline int calls = 0, calls_max = 1'000'000;

private:
    PlantedKernel kernel_{plan_with(PlantedDefect::wrong)};
};

TEST(Runner, DyingWhenAskedIsAFinding) {
    CampaignObserver silent;
    const auto laws = four_laws();
    const CampaignResult result = run_laws(
        laws, [] { return std::make_unique<Unwell>(); }, few_cases(), silent);
    EXPECT_FALSE(result.error);
    const LawResult& law = result.laws[0];
    EXPECT_EQ(law.verdict.decision, law::Decision::violated);
    ASSERT_TRUE(law.counterexample);
    EXPECT_EQ(law.counterexample->outcome, worker::Outcome::crash);
    EXPECT_EQ(law.counterexample->smallest.problem.len_kv, 41);
    EXPECT_EQ(law.verdict.violation->problem,
              "the kernel crashed: wrote to address 0x8 inside supports()");
    EXPECT_EQ(result.laws[3].verdict.decision, law::Decision::holds);  // lengths to 8
}

TEST(Runner, AKernelThatIsGoneLeavesWhatWasFound) {
    CampaignObserver silent;
    const std::vector laws{zero_law("first.any"), zero_law("second.any"), zero_law("third.any")};
    Unwell::calls = 0;
    Unwell::calls_max = 60;
    const CampaignResult result = run_laws(
        laws, [] { return std::make_unique<Unwell>(); }, few_cases(40, 1), silent);
    Unwell::calls_max = 1'000'000;
    EXPECT_TRUE(result.interrupted);
    EXPECT_THROW(std::rethrow_exception(result.error), worker::KernelGone);
    EXPECT_EQ(result.laws[0].verdict.decision, law::Decision::violated);
    EXPECT_TRUE(result.laws[0].counterexample);
    EXPECT_NE(result.laws[2].verdict.decision, law::Decision::holds);
}

TEST(Runner, AKernelThatCannotStartIsReported) {
    CampaignObserver silent;
    const auto laws = four_laws();
    const KernelFactory none = []() -> std::unique_ptr<Kernel> {
        throw BadInput("libx.so: not a plug-in");
    };
    EXPECT_THROW(run_laws(laws, none, few_cases(), silent), BadInput);
}

}  // namespace
}  // namespace attest::search
