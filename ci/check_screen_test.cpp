#include "ci/check_screen.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "ci/golden_runs_test.hpp"
#include "ci/run_words.hpp"

namespace attest::ci {
namespace {

using golden_runs::ended, golden_runs::golden_report, golden_runs::inconclusive_run;
using golden_runs::interrupted;

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
    EXPECT_NE(text.find("\n  masking      .  "), std::string::npos) << text;
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

TEST(CheckScreen, AKernelThatIsDeniedSomethingIsToldWhatItMayNotDo) {
    RunReport report = ended(golden_report("check_fail"));
    const auto text_of = [&report](const char* problem) {
        for (diagnosis::CounterexampleReport& c : report.counterexamples)
            c.example.verdict.violation->problem = problem;
        return draw_check(report, {80, false, false}, "attest-out");
    };
    const char* denied = "the kernel returned an error: open: Permission denied";
    report.run.kernel.barriers.clear();
    EXPECT_EQ(text_of(denied).find("--unconfined"), std::string::npos);
    report.run.kernel.barriers = {"files"};
    EXPECT_NE(text_of(denied).find("--unconfined lifts that"), std::string::npos);
    EXPECT_EQ(text_of(denied).find("socket"), std::string::npos);
    report.run.kernel.barriers = {"system_calls"};
    EXPECT_NE(text_of(denied).find("it opens no socket; --unconfined"), std::string::npos);
    report.run.kernel.barriers = {"processes"};
    EXPECT_EQ(text_of(denied).find("--unconfined"), std::string::npos);
    report.run.kernel.barriers = {"files"};
    EXPECT_EQ(text_of("the kernel returned an error: no").find("--unconfined"), std::string::npos);
    ::setenv("HOSTILE_DIR", "/tmp", 1);
    const char* missing = "the kernel raised KeyError: 'HOSTILE_DIR'";
    EXPECT_NE(text_of(missing).find("--env HOSTILE_DIR does so"), std::string::npos);
    report.run.kernel.options = {"--env HOSTILE_DIR"};
    EXPECT_EQ(text_of(missing).find("does so"), std::string::npos);
    ::unsetenv("HOSTILE_DIR");
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

// Why a run stopped stands in a whole sentence, and nobody is said to have interrupted it who did
// not.
TEST(CheckScreen, SaysWhyItStopped) {
    using Kind = law::Reason::Kind;
    const auto stopped = [](Kind kind, bool until_first, bool by_hand) {
        RunReport report = interrupted();
        report.run.until_first = until_first;
        for (search::LawReport& law : report.laws)
            if (was_cut(law)) law.verdict.reason = law::Reason(kind);
        return stopped_text(ended(std::move(report), by_hand));
    };
    EXPECT_EQ(stopped(Kind::interrupted, false, true),
              "the run was interrupted, and 30 laws were not tried");
    EXPECT_EQ(stopped(Kind::interrupted, true, true),
              "the run was interrupted, and 30 laws were not tried");
    EXPECT_EQ(stopped(Kind::interrupted, true, false),
              "-x ended the run with its first violation, and 30 laws were not tried");
    EXPECT_EQ(stopped(Kind::time_spent, false, false),
              "the time (--time) was spent, and 30 laws were not tried");
    EXPECT_EQ(stopped(Kind::always_dead, false, false),
              "attest stopped early: every case of the laws before ended without an answer to "
              "judge, and 30 laws were not tried, since they could only repeat that");
    EXPECT_EQ(stopped_text(ended(golden_report("check_pass"))), "");
}

TEST(CheckScreen, NothingIsSoManyTimesABoundOfZero) {
    law::Violation junk;
    junk.index = {0};
    junk.observed = 12345;
    junk.ratio = 1.4e45;
    EXPECT_EQ(element_words(junk).line(), "12345   expected 0   bound: exact");
    junk.bound = 0.5;
    EXPECT_EQ(element_words(junk).line(),
              "12345   expected 0   bound 0.5   1.4e45 times the bound");
}

TEST(CheckScreen, AReasonIsWrappedAndNotCut) {
    RunReport report = golden_report("check_pass");
    const std::string why =
        "the law affords 65 536 scores a case and the kernel takes no fewer "
        "than a million of them at once";
    for (search::LawReport& law : report.laws)
        if (law.family() == "position") law.verdict = law::not_applicable(law::Reason(why));
    const std::string text = draw_check(ended(std::move(report)), {80, false, false}, "out");
    std::string words;
    for (const char c : text)
        if (c != ' ' && c != '\n') words += c;
    EXPECT_NE(words.find("scoresacaseandthekerneltakesnofewerthanamillionofthematonce"),
              std::string::npos)
        << text;
}

}  // namespace
}  // namespace attest::ci
