// The verdict of a whole run, by those of its laws.

#include <gtest/gtest.h>

#include "ci/golden_runs_test.hpp"

namespace attest::ci {
namespace {

using golden_runs::golden_report, golden_runs::inconclusive_run, golden_runs::interrupted;

TEST(RunVerdict, WorstFirst) {
    const RunReport pass = golden_report("check_pass"), fail = golden_report("check_fail");
    EXPECT_EQ(verdict_of(pass, false).exit, 0);
    EXPECT_EQ(verdict_of(fail, false).exit, 1);
    EXPECT_EQ(verdict_of(fail, true).exit, 1);
    EXPECT_EQ(verdict_of(pass, true).decision, RunDecision::not_complete);
    EXPECT_EQ(verdict_of(interrupted(), false).exit, 3);
    EXPECT_EQ(verdict_of(inconclusive_run(), false).decision, RunDecision::inconclusive);
    RunReport nothing = pass;
    for (search::LawReport& law : nothing.laws)
        law.verdict.decision = law::Decision::not_applicable;
    EXPECT_EQ(verdict_of(nothing, false).exit, 3);
    EXPECT_EQ(verdict_of(RunReport{}, false).exit, 3);
}

TEST(RunVerdict, HangsOnNoSentence) {
    for (const RunReport& report :
         {golden_report("check_pass"), interrupted(), inconclusive_run()}) {
        const RunVerdict told = verdict_of(report, false);
        RunReport retold = report;
        for (search::LawReport& law : retold.laws) law.verdict.reason.text = "in other words";
        EXPECT_EQ(verdict_of(retold, false), told);
    }
    // What was cut stays cut, whatever its sentence looks like.
    RunReport cut = interrupted();
    for (search::LawReport& law : cut.laws)
        if (was_cut(law)) law.verdict.reason.text = "not in profile quick";
    EXPECT_EQ(verdict_of(cut, false).cut, verdict_of(interrupted(), false).cut);
    EXPECT_GT(verdict_of(cut, false).cut, 0);
}

TEST(RunVerdict, PairsNeverDrawnCountInAWholeRunAlone) {
    RunReport report = golden_report("check_pass");
    for (search::CoverageReport& coverage : report.coverage) coverage.allowed = 1;
    EXPECT_EQ(verdict_of(report, false).decision, RunDecision::holds);
    report.run.whole = true;
    const RunVerdict verdict = verdict_of(report, false);
    EXPECT_EQ(verdict.decision, RunDecision::inconclusive);
    EXPECT_EQ(verdict.reason, "2 feature pairs never drawn, as f5 with f4; the profile allows 1");
}

// One law that got there is enough: others may have limits of their own.
TEST(RunVerdict, APromisedSizeThatNoLawReachedCountsInAWholeRunAlone) {
    RunReport report = golden_report("check_pass");
    report.run.whole = true;
    ASSERT_EQ(verdict_of(report, false).decision, RunDecision::holds);
    const search::LawReport* last = nullptr;
    for (search::LawReport& law : report.laws) {
        if (law.largest.empty()) continue;
        if (last == nullptr)
            last = &law;
        else
            law.largest[search::SizeAxis::len_kv] = 300;
    }
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(verdict_of(report, false).decision, RunDecision::holds);
    for (search::LawReport& law : report.laws)
        if (!law.largest.empty()) law.largest[search::SizeAxis::len_kv] = 300;
    const RunVerdict verdict = verdict_of(report, false);
    EXPECT_EQ(verdict.decision, RunDecision::inconclusive);
    EXPECT_EQ(verdict.reason,
              "of the sizes that the profile promises these were never judged: tk 98 305");
    report.run.whole = false;
    EXPECT_EQ(verdict_of(report, false).decision, RunDecision::holds);
}

}  // namespace
}  // namespace attest::ci
