// A kernel that is known to race: what fails now and then is not asked for what it computes.

#include <gtest/gtest.h>

#include "properties/diagnosis/actor_test.hpp"
#include "properties/diagnosis/counterexample_report.hpp"

namespace attest::diagnosis {
namespace {

/// Answers zeros in every third process.
class EveryThirdProcess final : public Actor {
public:
    EveryThirdProcess()
        : Actor([this](const Specification&, const bound::Expected& truth) {
              bound::Expected own = truth;
              if (processes_ % 3 == 0)
                  for (bound::ExpectedElement& e : own.output) e.value = 0;
              return own;
          }) {}
    void restart() override { ++processes_; }

private:
    int processes_ = 0;
};

search::LawResult failed_once() {
    search::LawResult law;
    search::Counterexample& c = law.counterexample.emplace();
    c.law = "reference.output";
    c.smallest = c.found.tried = parse_case("b1 hq1 hkv1 tq1 tk3 d2 f32");
    c.verdict.violation.emplace();
    c.confirmed = {search::Confirmation::alone, {1, 1}, {}, {}};
    return law;
}

TEST(Races, WhatFailsEveryThirdProcessIsReplayedAndNotExplained) {
    EveryThirdProcess kernel;
    const CounterexampleReport report = counterexample_report(failed_once(), &kernel, true);
    EXPECT_TRUE(failed_now_and_then(report.example.confirmed));
    EXPECT_LT(report.example.confirmed.alone.failed, report.example.confirmed.alone.of);
    EXPECT_FALSE(report.diagnosis.known);
    EXPECT_EQ(report.diagnosis.cases, 0);
}

TEST(Races, WhatAlwaysFailsIsExplainedAllTheSame) {
    Actor zeros([](const Specification&, const bound::Expected& truth) {
        bound::Expected own = truth;
        for (bound::ExpectedElement& e : own.output) e.value = 0;
        return own;
    });
    const CounterexampleReport report = counterexample_report(failed_once(), &zeros, true);
    EXPECT_FALSE(failed_now_and_then(report.example.confirmed));
    EXPECT_EQ(report.example.confirmed.alone, (search::Replays{21, 21}));
    EXPECT_TRUE(report.diagnosis.known);
}

}  // namespace
}  // namespace attest::diagnosis
