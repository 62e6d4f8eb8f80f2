#include "ci/options.hpp"

#include <gtest/gtest.h>

#include "reference/problem/errors.hpp"

namespace attest::ci {
namespace {

std::string complaint(const std::vector<std::string>& argv) {
    try {
        parse_command_line(argv);
    } catch (const BadInput& error) {
        std::string all = error.what();
        for (const std::string& line : error.details()) all += "\n" + line;
        return all;
    }
    return "";
}

TEST(Options, ReadsWhatIsTyped) {
    const CommandOptions o = parse_command_line(
        {"check",     "./libmine.so", "--profile", "core",    "--match",
         "masking.*", "--match",      "rank.*",    "--seed",  "18446744073709551615",
         "--time",    "1.5m",         "--cases",   "7",       "--jobs",
         "3",         "--shard",      "1/4",       "--out",   "here",
         "--python",  "py",           "--timeout", "250ms",   "--record",
         "cases",     "--source",     "a.cu:12",   "--color", "never",
         "--ascii"});
    EXPECT_EQ(o.command, "check");
    EXPECT_EQ(o.arguments, std::vector<std::string>{"./libmine.so"});
    EXPECT_EQ(o.profile, "core");
    EXPECT_EQ(o.match, (std::vector<std::string>{"masking.*", "rank.*"}));
    EXPECT_EQ(o.seed, 18446744073709551615u);
    EXPECT_EQ(o.seconds, 90.0);
    EXPECT_EQ(o.cases, 7);
    EXPECT_EQ(o.jobs, 3);
    EXPECT_EQ(o.shard_index, 1);
    EXPECT_EQ(o.shard_count, 4);
    EXPECT_EQ(o.out, "here");
    EXPECT_EQ(o.timeout.value().count(), 250);
    EXPECT_TRUE(o.record_cases);
    EXPECT_TRUE(o.ascii);
}

TEST(Options, BenchTakesItsTimeAndInstructions) {
    const CommandOptions o = parse_command_line(
        {"bench", "oracle", "--time", "2m", "--seed", "3", "--instructions", "AVX2"});
    EXPECT_EQ(o.command, "bench");
    EXPECT_EQ(o.arguments, std::vector<std::string>{"oracle"});
    EXPECT_EQ(o.seconds, 120.0);
    EXPECT_EQ(o.seed, 3u);
    EXPECT_EQ(o.instructions, "AVX2");
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(parse_command_line({"bench", "oracle", "--out", "here"}).out, "here");
}

TEST(Options, AnEmptyValueIsNone) {
    for (const char* option : {"--seed", "--time", "--profile", "--cases", "--jobs", "--shard",
                               "--out", "--timeout", "--match", "--source", "--color"})
        EXPECT_EQ(complaint({"check", "cpu_flash", option, ""}),
                  std::string(option) +
                      " needs a value, and was given an empty one\n"
                      "leave the option out, or give it one");
    EXPECT_NE(complaint({"check", "cpu_flash", "--seed="}), "");
    EXPECT_NE(complaint({"check", "cpu_flash", "--time", "99999999999999999999h"}), "");
    EXPECT_NE(complaint({"check", "cpu_flash", "--timeout", "99999999999999999999h"}), "");
}

TEST(Options, TheShardIsWhatCISays) {
    const auto shard = [](std::vector<std::pair<const char*, const char*>> variables) {
        for (const auto& [name, value] : variables) ::setenv(name, value, 1);
        const std::string wrong = complaint({"check", "k", "--shard", "auto"});
        std::int64_t index = -1, count = -1;
        if (wrong.empty()) parse_shard("auto", index, count);
        for (const auto& [name, value] : variables) ::unsetenv(name);
        return wrong.empty() ? std::to_string(index) + "/" + std::to_string(count)
                             : wrong.substr(0, wrong.find('\n'));
    };
    for (const char* name : {"TEST_SHARD_INDEX", "GTEST_SHARD_INDEX", "CI_NODE_INDEX",
                             "SLURM_ARRAY_TASK_ID", "ATTEST_SHARD_INDEX"})
        ::unsetenv(name);
    EXPECT_EQ(shard({{"CI_NODE_INDEX", "3"}, {"CI_NODE_TOTAL", "3"}}), "2/3");
    EXPECT_EQ(shard({{"TEST_SHARD_INDEX", "0"}, {"TEST_TOTAL_SHARDS", "2"}}), "0/2");
    EXPECT_EQ(shard({{"GTEST_SHARD_INDEX", "1"}, {"GTEST_TOTAL_SHARDS", "2"}}), "1/2");
    EXPECT_EQ(shard({{"SLURM_ARRAY_TASK_ID", "7"},
                     {"SLURM_ARRAY_TASK_MIN", "5"},
                     {"SLURM_ARRAY_TASK_COUNT", "4"}}),
              "2/4");
    EXPECT_EQ(shard({{"CI_NODE_INDEX", "0"}, {"CI_NODE_TOTAL", "3"}}),
              "--shard auto: CI_NODE_INDEX and CI_NODE_TOTAL say part -1, from 0, of 3");
    EXPECT_EQ(shard({{"CI_NODE_INDEX", "2"}}), "--shard auto: CI_NODE_TOTAL is not set");
    EXPECT_EQ(shard({{"CI_NODE_INDEX", "x"}, {"CI_NODE_TOTAL", "3"}}),
              "--shard auto: CI_NODE_INDEX is no whole number: x");
    EXPECT_EQ(shard({}), "--shard auto: none of the variables is set that say which part this is");
}

TEST(Options, KernelMayFollowMatch) {
    const CommandOptions o = parse_command_line({"check", "--match", "a.*", "cpu_flash"});
    EXPECT_EQ(o.arguments, std::vector<std::string>{"cpu_flash"});
}

TEST(Options, OneSentenceAMistake) {
    EXPECT_EQ(complaint({"check", "./libmine.so", "--seeds", "7"}).substr(0, 56),
              "no option --seeds for check; did you mean --seed?\nattest");
    EXPECT_EQ(complaint({"check", "k", "--time", "60"}),
              "--time 60: a number and a unit, such as 60s or 5m");
    EXPECT_EQ(complaint({"check", "k", "--time", "-5s"}),
              "--time -5s: a number and a unit, such as 60s or 5m");
    EXPECT_EQ(complaint({"check", "k", "--shard", "4/4"}),
              "--shard 4/4: i/n with 0 <= i < n, such as 0/4, or auto");
    EXPECT_EQ(complaint({"check", "k", "--seed", "x"}),
              "--seed x: a whole number from 0 to 18446744073709551615, or random");
    EXPECT_EQ(complaint({"check", "k", "--jobs", "0"}), "--jobs 0: a whole number, at least 1");
    EXPECT_EQ(complaint({"check", "k", "--seed"}), "--seed needs one value");
    EXPECT_EQ(complaint({"check", "k", "--color", "red"}),
              "--color red: one of auto, always, never");
    EXPECT_EQ(complaint({"check", "k", "--source", "a.cu"}),
              "--source a.cu: FILE:LINE, such as kernels/mine.cu:120");
    EXPECT_EQ(complaint({"chek"}).substr(0, 37), "no command chek; did you mean check?\n");
    EXPECT_EQ(complaint({}).substr(0, 11), "no command\n");
    EXPECT_EQ(complaint({"check", "a", "b"}).substr(0, 34), "one argument too many for check: b");
    EXPECT_EQ(complaint({"check", "k", "--match", "a.*", "b.*"}),
              "one argument too many for check: b.*\na glob each: --match a.* --match b.*");
}

TEST(Options, HelpNamesEveryCommand) {
    const CommandOptions o = parse_command_line({"--help"});
    EXPECT_EQ(o.command, "help");
    for (const char* command :
         {"list", "check", "replay", "explain", "certify", "describe", "fixture"})
        EXPECT_NE(o.help.find(command), std::string::npos) << command;
    EXPECT_NE(parse_command_line({"check", "--help"}).help.find("--shard"), std::string::npos);
    EXPECT_EQ(parse_command_line({"check", "--help"}).help.find("--match TEXT ..."),
              std::string::npos);
}

}  // namespace
}  // namespace attest::ci
