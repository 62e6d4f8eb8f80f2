#include "ci/check_screen.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "ci/golden.hpp"
#include "ci/record.hpp"

namespace attest::ci {
namespace {

RunReport golden_report(const std::string& name) {
    return read_records(golden_directory() + "/" + name + ".jsonl");
}

/// As at the end of a run that found this.
RunReport ended(RunReport report, bool interrupted = false) {
    report.end->interrupted = interrupted;
    report.end->verdict = verdict_of(report, interrupted);
    return report;
}

// The run of check_pass, interrupted after the ninth family.
RunReport interrupted() {
    RunReport report = golden_report("check_pass");
    bool cut = false;
    for (search::LawReport& law : report.laws) {
        cut = cut || law.family() == "invariance";
        if (!cut || law.verdict.decision != law::Decision::holds) continue;
        law.verdict = law::not_run(law::Reason(law::Reason::Kind::interrupted));
        law.cases = 0;
    }
    return ended(report, true);
}

RunReport inconclusive_run() {
    RunReport report = golden_report("check_pass");
    for (search::LawReport& law : report.laws)
        if (law.family() == "reference" && law.verdict.decision == law::Decision::holds) {
            law.verdict.decision = law::Decision::inconclusive;
            law.verdict.reason = "every one of 306 draws was refused: \"head dim 64 only\"";
        }
    return ended(report);
}

struct Screenshot {
    const char* name;
    RunReport report;
};

TEST(CheckScreen, WhatWasNotAskedForSaysNothing) {
    RunReport report = golden_report("check_pass");
    report.run.match = {"masking.causal"};
    for (search::LawReport& law : report.laws)
        if (law.family() != "masking") {
            law.verdict = law::not_run(law::Reason(law::Reason::Kind::not_selected));
            law.cases = 0;
        }
    const std::string text = draw_check(ended(std::move(report)), {80, false, false}, "attest-out");
    EXPECT_NE(text.find("\n  masking        .  "), std::string::npos) << text;
    for (const char* other : {"reference ", "hygiene ", "not selected", "not run"})
        EXPECT_EQ(text.find(std::string("\n  ") + other), std::string::npos) << text;
    EXPECT_EQ(text.find("not selected"), std::string::npos);
    EXPECT_EQ(text.find("not run"), std::string::npos);
}

TEST(CheckScreen, LooksAsDesigned) {
    for (const auto& [name, report] : {Screenshot{"check_pass", ended(golden_report("check_pass"))},
                                       Screenshot{"check_fail", ended(golden_report("check_fail"))},
                                       Screenshot{"check_interrupted", interrupted()},
                                       Screenshot{"check_inconclusive", inconclusive_run()}})
        for (const int width : {80, 120})
            for (const bool rich : {false, true}) {
                const std::string text = draw_check(report, {width, rich, rich}, "attest-out");
                const std::string file = std::string(name) + "." + std::to_string(width) +
                                         (rich ? ".rich.txt" : ".plain.txt");
                EXPECT_EQ(golden_difference(file, text), "");
                std::istringstream lines(text);
                for (std::string line; std::getline(lines, line);)
                    EXPECT_LE(columns_of(line), width) << line;
                EXPECT_EQ(text, draw_check(report, {width, rich, rich}, "attest-out"));
            }
}

TEST(CheckScreen, AHangIsReplayedWithItsLimit) {
    KernelReport kernel;
    kernel.typed = "./mine.so";
    kernel.options = {"--timeout 2000ms", "--unconfined"};
    EXPECT_EQ(replay_line(kernel, "2b9a441d", "attest-out", worker::Outcome::hang),
              "attest replay 2b9a441d --kernel ./mine.so --timeout 2000ms --unconfined");
    EXPECT_EQ(replay_line(kernel, "2b9a441d", "attest-out", worker::Outcome::ok),
              "attest replay 2b9a441d --kernel ./mine.so --unconfined");
}

TEST(CheckScreen, ADoubtIsToldAndFailsNothing) {
    RunReport report = golden_report("check_pass");
    const RunVerdict without = verdict_of(report, false);
    law::Verdict& first = report.laws[0].verdict;
    first.doubt.emplace().violation_class = law::ViolationClass::suspect;
    first.doubt->problem = "the temperature is off by 2.4e-4";
    first.statistic = {"errors along one direction", 9.5, 6, 3e-8, 400};
    report = ended(report);
    EXPECT_EQ(report.end->verdict.exit, without.exit);
    const std::string text = draw_check(report, {120, false, false}, "attest-out");
    for (const std::string& line :
         {"! suspected  " + report.laws[0].law + "\n",
          std::string("the temperature is off by 2.4e-4 (false-positive rate 3e-8)\n"),
          std::string(", 1 law is suspected   exit 0\n"), std::string(" doubted")})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

// A verdict claims nothing more than what was looked at, and names where it was seen.
TEST(CheckScreen, WhatTheProfileLetsPassStandsInTheVerdict) {
    RunReport report = golden_report("check_pass");
    report.run.profile.name = "lax";
    report.run.profile.fails = {"violation"};
    for (const int n : {0, 1}) {
        search::LawReport& law = report.laws[static_cast<std::size_t>(n)];
        law.verdict.doubt.emplace().problem = "query 0 reads key 0";
        law.verdict.doubt->violation_class = law::ViolationClass::structure;
        law.doubted.emplace().cases = 3;
    }
    std::string text = draw_check(ended(report), {80, false, false}, "attest-out");
    EXPECT_NE(
        text.find("! HOLDS under profile lax, which fails violation alone: 2 laws are violated\n"),
        std::string::npos)
        << text;
    EXPECT_NE(
        text.find("  replay          attest replay '" + print(report.laws[0].doubted->first) +
                  "' --kernel " + report.run.kernel.typed + " --law " + report.laws[0].law + "\n"),
        std::string::npos)
        << text;
    EXPECT_EQ(text.find("\nHOLDS"), std::string::npos);
    report.run.profile.fails.clear();
    text = draw_check(ended(report), {80, false, false}, "attest-out");
    EXPECT_NE(text.find("lax, which fails nothing: 2 laws are violated\n"), std::string::npos)
        << text;
}

TEST(CheckScreen, SaysWhatTheKernelRefusedAndWhyThereAreFewerCases) {
    RunReport report = golden_report("check_pass");
    report.laws[0].refused = 300;
    report.laws[0].refusals = {{"a window", 1}, {"no sink", 299}};
    report.run.cases.reset();
    report.run.seconds.reset();
    report.run.profile.cases_per_law = 120;
    kernel::Takes& takes = report.run.kernel.manifest.takes;
    takes[kernel::Quantity::len_kv].least = 8192;
    takes[kernel::Quantity::dim_qk].only = {128};
    const std::string text = draw_check(ended(std::move(report)), {120, false, false}, "out");
    EXPECT_NE(text.find("of the draws, by the kernel, mostly: no sink\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("\ntried     at most 40 cases of each law: the smallest problem"),
              std::string::npos)
        << text;
}

TEST(CheckScreen, AFamilyThatWasNotAskedSaysWhatIsTrueOfMostOfIt) {
    RunReport report = golden_report("check_pass");
    const char* reasons[] = {"a first law alone", "no rope", "no rope", "no rope"};
    std::size_t n = 0;
    for (search::LawReport& law : report.laws)
        if (law.family() == "position" && n < std::size(reasons))
            law.verdict = law::not_applicable(law::Reason(reasons[n++]));
    const std::string text = draw_check(ended(std::move(report)), {80, false, false}, "out");
    EXPECT_NE(text.find("no rope"), std::string::npos) << text;
    EXPECT_EQ(text.find("a first law alone"), std::string::npos) << text;
}

TEST(CheckScreen, HostileTextIsHarmless) {
    RunReport report = ended(golden_report("check_fail"));
    const std::string evil = "\x1b[2J\x07\r\n<script>\xff\xc2\x9b" + std::string(500, 'W');
    KernelReport& kernel = report.run.kernel;
    kernel.manifest.name = kernel.manifest.version = kernel.typed = evil;
    for (search::LawReport& law : report.laws) law.verdict.reason = evil;
    report.laws[0].verdict.doubt.emplace().problem = evil;
    for (diagnosis::CounterexampleReport& c : report.counterexamples) {
        c.example.verdict.violation->problem = evil;
        c.diagnosis.says = evil;
    }
    const std::string text = draw_check(report, {80, false, false}, "attest-out");
    for (const char c : text) {
        const unsigned char byte = static_cast<unsigned char>(c);
        EXPECT_TRUE(c == '\n' || (byte >= 0x20 && byte < 0x7F)) << static_cast<int>(byte);
    }
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        EXPECT_TRUE(line.size() <= 80u || line.starts_with("  replay ")) << line;
}

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
    EXPECT_EQ(verdict_of(report, false).decision, RunDecision::inconclusive);
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
