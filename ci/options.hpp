#pragma once
// What a person typed, checked and turned into values. Every mistake is BadInput in one sentence.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attest::ci {

/// The files asked for beside the records; empty: not asked for.
struct ReportFiles {
    std::string junit, sarif, code_quality, summary;
    bool page = false;  ///< an HTML page
};

struct CommandOptions {
    std::string command;  ///< list, check, replay, explain, certify, verify, merge, key, report,
                          ///< gate, audit, describe, bench, fixture, new, help
    std::vector<std::string> arguments;  ///< what stands beside the command
    std::vector<std::string> argv;       ///< all of it, as typed
    std::string help;                    ///< the text asked for, where command is help

    std::string profile = "quick";
    std::vector<std::string> match;  ///< globs on law ids
    std::optional<std::uint64_t> seed;
    bool seed_random = false;  ///< also where CI is set
    std::optional<double> seconds;
    std::optional<std::int64_t> cases, shapes;
    bool until_first = false;  ///< check ends with the first violation
    bool all_cases = false;    ///< of each law, also once one is violated: of the gate's runs
    std::int64_t seeds = 1;    ///< of audit
    int jobs = 1;
    std::int64_t shard_index = 0, shard_count = 1;
    std::string out = "attest-out";
    std::string python = "python3";
    std::optional<std::chrono::milliseconds> timeout;
    bool unconfined = false;
    std::vector<std::string> variables;  ///< of the environment, given to the kernel too
    std::string resume;
    bool record_cases = false;
    std::string source;           ///< FILE:LINE of the kernel, for editors and CI
    std::string colour = "auto";  ///< auto, always, never
    bool ascii = false;
    ReportFiles files;
    std::string baseline, candidate, waivers;  ///< of gate
    double accuracy = 1.5;
    bool profile_given = false;
    std::string sign, public_key, against;  ///< of certify, merge and verify
    std::int64_t rerun = 0;                 ///< cases that verify judges again
    std::string kernel, law;                ///< of replay and explain
    std::string story;                      ///< of fixture, with the laws in `match`
    bool replace = false;
    bool laws = false;         ///< of describe
    std::string instructions;  ///< of bench: an instruction set by name; empty: the best
};

/// argv without the program's name.
CommandOptions parse_command_line(const std::vector<std::string>& argv);

/// The two values with a syntax of their own: "60s", "500ms", "5m", "1h"; "0/4".
double parse_duration(const std::string& option, const std::string& text);  ///< seconds
/// "auto": by the variables of GitLab, Bazel, GoogleTest or Slurm, or our own.
void parse_shard(const std::string& text, std::int64_t& index, std::int64_t& count);

/// Options that take one of a few words, or a place in a file: BadInput for others.
void check_words(const CommandOptions& options);

}  // namespace attest::ci
