#include "ci/check_screen.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "ci/golden.hpp"
#include "ci/run_verdict.hpp"

namespace attest {
namespace {

Records golden_records(const std::string& name) {
    return read_records(golden_directory() + "/" + name + ".jsonl");
}

// The run of check_pass, interrupted after the ninth family.
Records interrupted() {
    Records records = golden_records("check_pass");
    bool cut = false;
    for (Record& law : records.laws) {
        cut = cut || law.at("family") == "invariance";
        if (!cut || law.at("verdict") != "holds") continue;
        law["verdict"] = "not_run";
        law["reason"] = "interrupted before its first case";
        law["reason_kind"] = "interrupted";
        law["cases"] = law["elements"] = 0;
    }
    records.end["interrupted"] = true;
    return records;
}

Records inconclusive() {
    Records records = golden_records("check_pass");
    for (Record& law : records.laws)
        if (law.at("family") == "reference" && law.at("verdict") == "holds") {
            law["verdict"] = "inconclusive";
            law["reason"] = "every one of 306 draws was refused: \"head dim 64 only\"";
        }
    return records;
}

struct Screenshot {
    const char* name;
    Records records;
};

TEST(CheckScreen, LooksAsDesigned) {
    for (const auto& [name, records] :
         {Screenshot{"check_pass", golden_records("check_pass")},
          Screenshot{"check_fail", golden_records("check_fail")},
          Screenshot{"check_interrupted", interrupted()},
          Screenshot{"check_inconclusive", inconclusive()}})
        for (const int width : {80, 120})
            for (const bool rich : {false, true}) {
                const std::string text = draw_check(records, {width, rich, rich}, "attest-out");
                const std::string file = std::string(name) + "." + std::to_string(width) +
                                         (rich ? ".rich.txt" : ".plain.txt");
                EXPECT_EQ(golden_difference(file, text), "");
                std::istringstream lines(text);
                for (std::string line; std::getline(lines, line);)
                    EXPECT_LE(columns_of(line), width) << line;
                EXPECT_EQ(text, draw_check(records, {width, rich, rich}, "attest-out"));
            }
}

TEST(CheckScreen, ADoubtIsToldAndFailsNothing) {
    Records records = golden_records("check_pass");
    const RunVerdict without = verdict_of(records, false);
    records.laws[0]["doubt"] = {{"class", "suspect"}, {"says", "the temperature is off by 2.4e-4"}};
    records.laws[0]["statistic"] = {{"name", "errors along one direction"},
                                    {"value", 9.5},
                                    {"threshold", 6},
                                    {"false_positive_rate", 3e-8},
                                    {"samples", 400}};
    EXPECT_EQ(verdict_of(records, false).exit, without.exit);
    const std::string text = draw_check(records, {120, false, false}, "attest-out");
    const std::string line = "suspect   " + records.laws[0].at("law").get<std::string>() +
                             ": the temperature is off by 2.4e-4 (false-positive rate 3e-8)";
    EXPECT_NE(text.find(line), std::string::npos) << text;
}

TEST(CheckScreen, HostileTextIsHarmless) {
    Records records = golden_records("check_fail");
    const std::string evil = "\x1b[2J\x07\r\n<script>\xff\xc2\x9b" + std::string(500, 'W');
    records.run["kernel"]["name"] = records.run["kernel"]["version"] = evil;
    records.run["kernel"]["typed"] = evil;
    for (Record& law : records.laws)
        if (law.at("reason").is_string()) law["reason"] = evil;
    records.laws[0]["doubt"] = {{"class", "suspect"}, {"says", evil}};
    for (Record& c : records.counterexamples) c["problem"] = c["diagnosis"]["says"] = evil;
    const std::string text = draw_check(records, {80, false, false}, "attest-out");
    for (const char c : text) {
        const unsigned char byte = static_cast<unsigned char>(c);
        EXPECT_TRUE(c == '\n' || (byte >= 0x20 && byte < 0x7F)) << static_cast<int>(byte);
    }
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(RunVerdict, WorstFirst) {
    EXPECT_EQ(verdict_of(golden_records("check_pass"), false).exit, 0);
    EXPECT_EQ(verdict_of(golden_records("check_fail"), false).exit, 1);
    EXPECT_EQ(verdict_of(golden_records("check_fail"), true).exit, 1);
    EXPECT_EQ(verdict_of(golden_records("check_pass"), true).verdict, "not_complete");
    EXPECT_EQ(verdict_of(interrupted(), false).exit, 3);
    EXPECT_EQ(verdict_of(inconclusive(), false).verdict, "inconclusive");
    Records nothing = golden_records("check_pass");
    for (Record& law : nothing.laws) law["verdict"] = "not_applicable";
    EXPECT_EQ(verdict_of(nothing, false).exit, 3);
    EXPECT_EQ(verdict_of(Records{}, false).exit, 3);
}

TEST(RunVerdict, HangsOnNoSentence) {
    for (const Records& records : {golden_records("check_pass"), interrupted(), inconclusive()}) {
        const RunVerdict told = verdict_of(records, false);
        Records retold = records;
        for (Record& law : retold.laws)
            if (law.at("reason").is_string()) law["reason"] = "in other words";
        EXPECT_EQ(verdict_of(retold, false).exit, told.exit);
        EXPECT_EQ(verdict_of(retold, false).cut, told.cut);
    }
    // What was cut stays cut, whatever its sentence looks like.
    Records cut = interrupted();
    for (Record& law : cut.laws)
        if (was_cut(law)) law["reason"] = "not in profile quick";
    EXPECT_EQ(verdict_of(cut, false).cut, verdict_of(interrupted(), false).cut);
}

TEST(RunVerdict, PairsNeverDrawnCountInAWholeRunAlone) {
    Records records = golden_records("check_pass");
    records.coverage[0]["allowed"] = records.coverage[1]["allowed"] =
        records.coverage[2]["allowed"] = 1;
    EXPECT_EQ(verdict_of(records, false).verdict, "holds");
    records.run["whole"] = true;
    EXPECT_EQ(verdict_of(records, false).verdict, "inconclusive");
}

}  // namespace
}  // namespace attest
