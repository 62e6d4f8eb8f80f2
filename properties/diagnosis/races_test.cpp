// A kernel that is known to race: what fails now and then is not asked for what it computes.

#include <gtest/gtest.h>

#include <cmath>

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

// What a race leaves wrong in every replay may be as small as a step's errors.
TEST(Races, OfOneThatIsKnownNoCoarserStepIsNamed) {
    search::LawResult law = failed_once();
    law.counterexample->smallest = law.counterexample->found.tried =
        parse_case("b1 hq2 hkv2 tq4 tk16 d8 f32");
    const auto named_where = [&](bool races) {
        Actor kernel(row_by_row([](const std::vector<double>& below,
                                   const std::vector<double>& values) {
            RowAnswer answer;
            for (std::size_t j = 0; j < below.size(); ++j) {
                const double weight = std::exp(below[j]) * (1 + std::sin(1e4 * below[j]) / 1024);
                answer.sum += weight;
                answer.output += weight * values[j];
            }
            answer.output /= answer.sum;
            return answer;
        }));
        return counterexample_report(law, &kernel, races).diagnosis.id;
    };
    EXPECT_EQ(named_where(false), "step_exp_1024");
    EXPECT_EQ(named_where(true), "");
}

}  // namespace
}  // namespace attest::diagnosis
