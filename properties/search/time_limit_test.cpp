// A limit is generous where there is a reason, and short where there is none.

#include "properties/search/time_limit.hpp"

#include <gtest/gtest.h>

#include "properties/search/campaign_test.hpp"
#include "properties/search/limited_kernel.hpp"

namespace attest::search {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds full{10'000};
constexpr double few = 1000;

TEST(TimeLimit, IsNeverNearAGoodCallAndShortOtherwise) {
    for (const double good : {0.001, 0.02, 0.9, 2.0}) {
        TimeLimit limit(full);
        limit.saw_good(good, few, false);
        EXPECT_EQ(limit.of(0, false), full);
        limit.saw_hang();
        EXPECT_GE(limit.of(0, false).count(), 4 * 1000 * good - 1) << good;
        EXPECT_LE(limit.of(0, false).count(), good < 0.25 ? 1000 : 10'000) << good;
    }
}

TEST(TimeLimit, TheFirstCallOfAProcessHasItsOwn) {
    TimeLimit limit(full, 6);
    EXPECT_EQ(limit.of(0, true), milliseconds(60'000));
    EXPECT_EQ(limit.of(0, false), full);
    EXPECT_EQ(limit.patient(0), milliseconds(60'000));
    limit.saw_good(3, few, true);  // it took three seconds to start
    EXPECT_EQ(limit.of(0, true), milliseconds(22'000));
    EXPECT_EQ(limit.of(0, false), full);
    limit.saw_hang();
    EXPECT_EQ(limit.of(0, true), milliseconds(12'200));
}

TEST(TimeLimit, GrowsWithTheArithmetic) {
    TimeLimit limit(full);
    EXPECT_EQ(limit.of(1e8, false), full + milliseconds(4'000));  // a second, nobody knows better
    EXPECT_FALSE(limit.too_many(1e8));
    EXPECT_TRUE(limit.too_many(2e9));
    limit.saw_good(0.1, 1e8, false);  // 1e9 a second
    EXPECT_EQ(limit.of(1e9, false), full + milliseconds(4'000));
    EXPECT_FALSE(limit.too_many(2e9));
    EXPECT_TRUE(limit.too_many(2e10));
    EXPECT_LE(limit.of(1e18, false), 31 * full);
    EXPECT_EQ(limit.too_slow(milliseconds(50'000), 6e11),
              "did not return within 50s; at the speed of its other calls it takes about 10m: "
              "--timeout 20m waits for it");
}

TEST(TimeLimit, WithoutASignOfLifeItIsShorter) {
    TimeLimit compiled(full, compiled_patience), other(full, 6);
    EXPECT_EQ(compiled.silence(0, false), milliseconds(2'500));
    EXPECT_EQ(compiled.silence(0, true), milliseconds(6'000));
    EXPECT_EQ(other.silence(0, false), milliseconds(5'000));
    // A limit that was asked for is waited for by the call that decides.
    const TimeLimit stated(full, compiled_patience, full);
    EXPECT_EQ(stated.silence(0, false), milliseconds(2'500));
    EXPECT_EQ(stated.silence(0, true), milliseconds(10'000));
    EXPECT_EQ(other.silence(0, true), milliseconds(12'000));
    // Of 1e6 products a second, and four times 1e8 of them, as a slow kernel may be.
    EXPECT_EQ(compiled.silence(1e6, false), milliseconds(3'540));
    compiled.saw_good(0.1, 1e8, false);
    EXPECT_EQ(compiled.silence(1e6, false), milliseconds(2'504));
    compiled.saw_good(3, few, true);
    EXPECT_EQ(compiled.silence(0, true), milliseconds(12'000));
}

TEST(TimeLimit, OneThatWasShortIsRaised) {
    TimeLimit limit(full);
    limit.was_short(20);
    EXPECT_EQ(limit.full(), milliseconds(80'000));
    EXPECT_FALSE(limit.hangs());
}

/// A kernel that never returns from large problems, though not for a fault of its own.
TEST(LimitedKernel, WhatTheArithmeticExplainsIsNoHang) {
    TimeLimit limit(full);
    const auto kernel = [&](bool hangs) {
        return LimitedKernel(std::make_unique<PlantedKernel>(plan_with(
                                 PlantedDefect::hang, [hangs](const Problem&) { return hangs; })),
                             limit);
    };
    Problem large;
    large.len_q = large.len_kv = 1 << 15;
    large.dim_qk = 64;
    const TensorSet none;
    LimitedKernel slow = kernel(true);
    const worker::CallResult result = slow.forward(large, none);
    EXPECT_EQ(result.outcome, worker::Outcome::slow);
    EXPECT_NE(result.reason.find("--timeout"), std::string::npos) << result.reason;
    EXPECT_FALSE(limit.hangs());
    EXPECT_EQ(slow.forward(Problem{}, none).outcome, worker::Outcome::hang);
    EXPECT_FALSE(limit.hangs());  // its case is tried once more
    slow.set_timeout(limit.patient(0));
    EXPECT_EQ(slow.forward(Problem{}, none).outcome, worker::Outcome::hang);
    EXPECT_TRUE(limit.hangs());  // in a fresh process, under the patient limit
}

/// Two cases too slow to be judged leave a law undecided, and end it.
TEST(LimitedKernel, WhatIsTooSlowIsInconclusive) {
    law::Property large = zero_law("slow.law");
    large.check = [](const law::Given&) -> law::Plan {
        return law::Judge([](const law::Trial& trial) {
            Problem p = trial.problem();
            p.len_q = p.len_kv = 1 << 15;
            trial.run(p, trial.inputs());
            return law::holds(1);
        });
    };
    const auto long_rows = [](const Problem& p) { return p.len_kv == 1 << 15; };
    const CampaignResult result =
        run({large}, plan_with(PlantedDefect::hang, long_rows), few_cases(40, 1));
    const LawResult& law = result.laws[0];
    EXPECT_EQ(law.verdict.decision, law::Decision::inconclusive);
    EXPECT_EQ(law.verdict.reason.kind, law::Reason::Kind::too_slow);
    EXPECT_EQ(law.cases, 2);
    EXPECT_FALSE(law.counterexample);
}

}  // namespace
}  // namespace attest::search
