// `attest gate`: the candidate is judged by the baseline's own cases.

#include <unistd.h>

#include <filesystem>

#include "ci/check_screen.hpp"
#include "ci/ci_files.hpp"
#include "ci/commands.hpp"
#include "ci/escape.hpp"
#include "ci/exit_code.hpp"
#include "ci/gate_screen.hpp"
#include "ci/machine.hpp"
#include "ci/recorded_run.hpp"
#include "ci/run.hpp"
#include "ci/run_words.hpp"
#include "kernels/interface/kernel_spec.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

bool is_recorded(const std::string& what) {
    return std::filesystem::is_directory(what) || what.ends_with(".jsonl");
}

/// The options that judge this kernel by these cases, as if they had been typed.
CommandOptions check_options(const CommandOptions& gate, const CommandOptions& cases,
                             const std::string& kernel, const std::string& folder) {
    CommandOptions o = cases;
    o.command = "check";
    o.all_cases = true;  // what one run does not try cannot be held against the other
    o.arguments = {kernel};
    o.out = gate.out + "/" + folder;
    o.jobs = gate.jobs;
    o.python = gate.python;
    o.timeout = gate.timeout;
    o.source = gate.source;
    o.unconfined = gate.unconfined;
    o.variables = gate.variables;
    o.resume.clear();
    o.argv = {"check", kernel, "--profile", o.profile, "--seed", std::to_string(*o.seed)};
    for (const std::string& glob : o.match) o.argv.insert(o.argv.end(), {"--match", glob});
    if (o.cases) o.argv.insert(o.argv.end(), {"--cases", std::to_string(*o.cases)});
    if (o.shapes) o.argv.insert(o.argv.end(), {"--shapes", std::to_string(*o.shapes)});
    if (o.unconfined) o.argv.push_back("--unconfined");
    for (const std::string& variable : o.variables)
        o.argv.insert(o.argv.end(), {"--env", variable});
    return o;
}

/// The baseline's own options, where it was recorded; those typed for the gate, where it was not.
CommandOptions cases_of(const CommandOptions& gate, const RunReport* recorded) {
    if (recorded == nullptr) {
        CommandOptions o = gate;
        o.seed = chosen_seed(gate);
        return o;
    }
    CommandOptions o = parse_command_line(recorded->run.argv);
    o.seed = recorded->run.seed;
    // What CI types for every run may be typed here too, as long as it says the same.
    if ((gate.seed && gate.seed != o.seed) || (gate.cases && gate.cases != o.cases) ||
        (gate.shapes && gate.shapes != o.shapes) ||
        (!gate.match.empty() && gate.match != o.match) ||
        (gate.profile_given && gate.profile != o.profile))
        throw BadInput(
            "gate: --profile, --seed, --cases, --shapes and --match are the recorded run's",
            {"leave them out, or name kernels alone"});
    if (recorded->run.seconds || recorded->run.shard_count != 1)
        throw BadInput("gate: a run with --time or --shard has no cases that can be repeated",
                       {"record it with --cases, whole or merged"});
    return o;
}

/// What is typed names records or a kernel.
void require_named(const std::string& typed) {
    try {
        if (!is_recorded(typed)) kernel::parse_kernel_spec(typed);
    } catch (const BadInput& error) {
        std::vector<std::string> details = error.details();
        details.emplace_back("records are a folder that attest check wrote: attest-out");
        throw BadInput(error.what(), details);
    }
}

void require_same_cases(const RunReport& baseline, const RunReport& candidate) {
    const std::string difference = other_cases(baseline, candidate);
    if (!difference.empty())
        throw BadInput(
            "gate: the two did not judge the same cases: the baseline has " + difference,
            {"record the baseline again with this attest: attest check " +
             clean(baseline.run.kernel.typed) + " --seed " + std::to_string(candidate.run.seed)});
}

// The commands that bring to an end what was cut, and judge by all cases what was stopped early.
std::vector<std::string> remedies_of(const CommandOptions& gate, const RunReport& baseline,
                                     const std::string& before, const RunReport& candidate,
                                     const std::string& after) {
    std::vector<std::string> commands;
    if (was_ended_early(baseline)) commands.push_back(resume_line(baseline.run, before));
    if (was_ended_early(candidate)) commands.push_back(resume_line(candidate.run, after));
    if (commands.empty() && stopped_by(candidate) != nullptr)
        commands.push_back("attest gate --baseline " + shell_word(clean(gate.baseline)) +
                           " --candidate " + shell_word(clean(candidate.run.kernel.typed)));
    return commands;
}

}  // namespace

int gate_command(const CommandOptions& options) {
    if (options.baseline.empty() || options.candidate.empty())
        throw BadInput("gate: needs --baseline and --candidate",
                       {"attest gate --baseline attest-out --candidate ./mine.so"});
    require_named(options.baseline);
    require_named(options.candidate);
    prepare_ci_files(options.files);
    const std::vector<Waiver> waivers =
        options.waivers.empty() ? std::vector<Waiver>() : load_waivers(options.waivers);
    std::string directory = options.out + "/candidate", before = options.out + "/baseline";
    RunReport baseline, candidate;
    const bool first = is_recorded(options.baseline), second = is_recorded(options.candidate);
    if (first) baseline = read_run(options.baseline, before);
    if (second) candidate = read_run(options.candidate, directory);
    const CommandOptions cases = cases_of(options, first    ? &baseline
                                                   : second ? &candidate
                                                            : nullptr);
    if (!first)
        baseline =
            run_and_record(check_options(options, cases, options.baseline, "baseline")).report;
    if (!first && baseline.end->interrupted) {
        write_out("gate: interrupted while the baseline was judged; nothing was compared\n");
        return exit_inconclusive;
    }
    if (!second)
        candidate =
            run_and_record(check_options(options, cases, options.candidate, "candidate")).report;
    require_same_cases(baseline, candidate);
    GateReport gate =
        compare_runs(baseline, candidate, {options.accuracy}, waivers, time_now().substr(0, 10));
    if (!gate.undecided.empty())
        gate.remedies = remedies_of(options, baseline, before, candidate, directory);
    const auto style = style_of(STDOUT_FILENO, options.colour, options.ascii);
    write_out(printed(candidate, draw_gate(gate, baseline, candidate, directory, style), directory,
                      &gate));
    write_ci_files(candidate, options.files, directory, directory + "/report.html",
                   gate_page(gate, baseline, candidate, directory), &gate);
    return gate.exit;
}

}  // namespace attest::ci
