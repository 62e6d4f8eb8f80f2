#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "ci/case_source.hpp"
#include "ci/check_screen.hpp"
#include "ci/embedded.hpp"
#include "ci/machine.hpp"
#include "ci/profile.hpp"
#include "ci/record.hpp"
#include "ci/run.hpp"
#include "ci/screen.hpp"
#include "ci/suggest.hpp"
#include "properties/search/glob.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/digest.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

namespace fs = std::filesystem;

/// What a run that goes on may be told anew; the rest was decided when it began.
constexpr std::string_view told_anew[] = {"--resume",  "--color",  "--ascii", "--jobs",
                                          "--time",    "--junit",  "--sarif", "--code-quality",
                                          "--summary", "--report", "--sign"};

bool typed(const CommandOptions& options, std::string_view option) {
    return std::ranges::any_of(options.argv, [&](const std::string& word) {
        return word.substr(0, word.find('=')) == option;
    });
}

/// What lies below this folder has the same name in every checkout; what lies elsewhere, its own.
std::string relative_text(const std::string& text) {
    if (!text.starts_with("/")) return text;
    // Not what a link leads to: an interpreter finds its packages by the link.
    const fs::path relative = fs::path(text).lexically_relative(fs::current_path());
    return relative.empty() || *relative.begin() == ".." ? text : relative.string();
}

// An option that says what the run was begun with changes nothing.
bool said_again(const std::vector<std::string>& now, std::size_t at,
                const std::vector<std::string>& begun) {
    const auto same = std::ranges::find(begun, relative_text(now[at]));
    if (same == begun.end() || now[at].find('=') != std::string::npos) return same != begun.end();
    const bool last = at + 1 == now.size(), last_begun = same + 1 == begun.end();
    return last || last_begun ? last == last_begun : relative_text(now[at + 1]) == *(same + 1);
}

void require_as_begun(const CommandOptions& now, const std::vector<std::string>& begun) {
    for (std::size_t at = 0; at < now.argv.size(); ++at) {
        const std::string& word = now.argv[at];
        const std::string option = word.substr(0, word.find('='));
        if (!option.starts_with("-") ||
            std::ranges::find(told_anew, option) != std::end(told_anew) ||
            said_again(now.argv, at, begun))
            continue;
        throw BadInput("--resume " + now.resume + ": goes on with the run as it was begun, " +
                           option + " cannot change",
                       {"leave it out, or begin another run in another --out"});
    }
}

// The run that was begun here, asked for again with what it has already shown.
CommandOptions resumed(const CommandOptions& now, RunReport& earlier) {
    const std::string path = now.resume + "/result.jsonl";
    if (!fs::exists(path))
        throw BadInput("--resume " + now.resume + ": has no result.jsonl",
                       {"the folder of an earlier run, such as attest-out"});
    RunReport report = read_records(path);
    require_as_begun(now, report.run.argv);
    CommandOptions then = parse_command_line(report.run.argv);
    if (then.arguments.empty()) throw BadInput(path + ": its run names no kernel");
    const std::string& kernel = then.arguments.front();
    if (then.command != now.command)
        throw BadInput(
            "--resume " + now.resume + ": was begun by attest " + then.command,
            {"attest " + then.command + " " + clean(kernel) + " --resume " + clean(now.resume)});
    if (now.arguments.empty())
        allow_kernel(kernel::parse_kernel_spec(kernel, then.python), then.command,
                     "attest " + then.command + " " + clean(kernel) + " --resume " + now.resume);
    else if (now.arguments.front() != kernel)
        throw BadInput("--resume " + now.resume + ": the earlier run judged " + clean(kernel) +
                       ", not " + now.arguments.front());
    then.seed = report.run.seed;
    then.out = then.resume = now.resume;
    then.colour = now.colour;
    then.ascii = now.ascii;
    if (typed(now, "--jobs")) then.jobs = now.jobs;
    if (now.seconds) then.seconds = now.seconds;
    for (std::string ReportFiles::*file : {&ReportFiles::junit, &ReportFiles::sarif,
                                           &ReportFiles::code_quality, &ReportFiles::summary})
        if (!(now.files.*file).empty()) then.files.*file = now.files.*file;
    then.files.page = then.files.page || now.files.page;
    std::erase_if(report.laws, [&](const search::LawReport& law) {
        // A violation whose counterexample is missing was cut while it was shrunk: its law runs
        // again.
        if (law.verdict.decision == law::Decision::violated)
            return report.counterexample(law.counterexample) == nullptr;
        return was_cut(law) || law.verdict.reason.kind == law::Reason::Kind::interrupted;
    });
    std::erase_if(report.cases,
                  [&](const search::CaseReport& one) { return report.law(one.law) == nullptr; });
    std::erase_if(report.draws,
                  [&](const search::DrawReport& one) { return report.law(one.law) == nullptr; });
    std::erase_if(report.counterexamples, [&](const diagnosis::CounterexampleReport& one) {
        return report.law(one.example.law) == nullptr;
    });
    report.causes.clear();
    earlier = std::move(report);
    return then;
}

/// Two runs of one commit shall say the same: under CI the seed is fixed, unless one is asked for.
bool is_ci() {
    const char* value = std::getenv("CI");
    const std::string_view text = value == nullptr ? "" : value;
    return !text.empty() && text != "false" && text != "0";
}

std::uint64_t random_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

KernelReport kernel_report(const kernel::KernelSpec& spec, const kernel::Manifest& manifest) {
    KernelReport report{manifest, spec.name(), relative_text(spec.text), spec.interface, {}, {}};
    if (spec.path.empty()) return report;
    report.file = fs::path(spec.path).filename().string();
    report.sha256 = file_digest(spec.path);
    return report;
}

}  // namespace

void require_some_law(const std::vector<std::string>& match) {
    if (match.empty()) return;
    std::vector<std::string> near;
    for (const law::Property& law : law::catalogue()) {
        if (search::matches_any(match, law.id)) return;
        for (std::string name : {law.id, law.family() + ".*", law.family()})
            if (std::find(near.begin(), near.end(), name) == near.end())
                near.push_back(std::move(name));
    }
    const std::string& glob = match.front();
    // "mask.*" is the beginning of a family.
    const std::string begun = glob.substr(0, glob.find_first_of(".*"));
    const auto longer = std::ranges::find_if(near, [&](const std::string& name) {
        return !begun.empty() && name.starts_with(begun) && name.ends_with(".*");
    });
    throw BadInput(
        "--match \"" + glob + "\" matches none of " + std::to_string(law::catalogue().size()) +
            " laws" +
            (longer != near.end() ? "; did you mean " + *longer + "?" : suggestion(glob, near)),
        {"attest list laws shows them"});
}

std::vector<search::CoverageReport> drawn_before(const RunReport& earlier,
                                                 const kernel::Manifest& manifest) {
    if (!earlier.run.recorded) return earlier.coverage;
    search::CampaignResult before;
    before.manifest = manifest;
    for (const search::LawReport& law : earlier.laws) {
        search::LawResult one;
        for (const search::CaseReport& tried : earlier.cases)
            if (tried.law == law.law) one.records.push_back(tried.record);
        for (const diagnosis::CounterexampleReport& c : earlier.counterexamples)
            if (c.example.law == law.law) one.counterexample = c.example;
        before.laws.push_back(std::move(one));
    }
    return search::coverage_reports(before, 0, nullptr, {});
}

std::string file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    if (!file) throw BadInput(path + ": cannot be read");
    return bytes.str();
}

std::string file_digest(const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) ? sha256_hex(file_text(path)) : "";
}

std::uint64_t chosen_seed(const CommandOptions& options) {
    if (options.seed) return *options.seed;
    return is_ci() && !options.seed_random ? ci_seed : random_seed();
}

RunPlan plan_run(const CommandOptions& options) {
    RunPlan plan;
    plan.options = options.resume.empty() ? options : resumed(options, plan.earlier);
    const CommandOptions& o = plan.options;
    if (o.arguments.empty())
        throw BadInput(o.command + ": no kernel named", {"attest " + o.command + " cpu_flash",
                                                         "attest list kernels shows those "
                                                         "built in"});
    plan.profile = load_profile(o.profile);
    require_some_law(o.match);
    plan.kernel = kernel::parse_kernel_spec(o.arguments.front(), o.python);
    plan.seed = chosen_seed(o);
    plan.match = o.match;
    if (!o.resume.empty()) {
        plan.match.clear();
        for (const law::Property& law : law::catalogue())
            if (search::selected(o.match, law.id) && plan.earlier.law(law.id) == nullptr)
                plan.match.push_back(law.id);
    }
    return plan;
}

void require_same_kernel(const RunPlan& plan, const RunHeader& now) {
    if (plan.options.resume.empty()) return;
    const RunHeader& begun = plan.earlier.run;
    const KernelReport &before = begun.kernel, &after = now.kernel;
    // Of what it is made of, the files of both: more are imported, and loaded, by later calls.
    const auto differ = [](const auto& then, const auto& files) {
        return std::ranges::any_of(files, [&then](const auto& file) {
            const auto known = then.find(file.first);
            return known != then.end() && known->second != file.second;
        });
    };
    std::string what;
    if (begun.catalogue != now.catalogue)
        what = "was begun by attest " + begun.attest_version + ", with other laws";
    else if (before.sha256 != after.sha256 || before.manifest.name != after.manifest.name ||
             before.manifest.version != after.manifest.version ||
             differ(before.manifest.sources, after.manifest.sources) ||
             differ(before.libraries, after.libraries))
        what = clean(after.typed) + " is another than the one that was judged there";
    if (!what.empty())
        throw BadInput("--resume " + plan.options.resume + ": " + what,
                       {"begin another run in another --out"});
}

RunHeader run_header(const RunPlan& plan, const kernel::Manifest& manifest) {
    const CommandOptions& o = plan.options;
    RunHeader run{
        .command = o.command,
        .argv = {},
        .attest_version = std::string(attest_version()),
        .catalogue = law::catalogue_digest(),
        .catalogue_laws = static_cast<std::int64_t>(law::catalogue().size()),
        .started = time_now(),
        .seed = plan.seed,
        .shard_index = o.shard_index,
        .shard_count = o.shard_count,
        .seconds = o.seconds,
        .cases = o.cases,
        .shapes = o.shapes,
        .profile = plan.profile,
        .kernel = kernel_report(plan.kernel, manifest),
        .machine = this_machine(),
        .whole = o.match.empty() && !o.cases && !o.seconds && !o.shapes && o.shard_count == 1,
        .source = o.source,
        .match = o.match,
        .all_cases = o.all_cases,
        .until_first = o.until_first,
        .recorded = o.record_cases || o.command == "certify" || o.shard_count > 1,
        .threads = o.jobs,
        .own_profile = o.profile.ends_with(".json") ? file_text(o.profile) : ""};
    if (const std::string python = python_option(relative_text(o.python)); !python.empty())
        run.kernel.options.push_back(python);
    if (o.timeout)
        run.kernel.options.push_back("--timeout " + std::to_string(o.timeout->count()) + "ms");
    if (o.unconfined) run.kernel.options.push_back("--unconfined");
    for (const std::string& variable : o.variables)
        run.kernel.options.push_back("--env " + variable);
    for (const std::string& word : o.argv) run.argv.push_back(relative_text(word));
    return run;
}

}  // namespace attest::ci
