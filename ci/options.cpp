#include "ci/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <thread>

#include "ci/embedded.hpp"
#include "ci/suggest.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

// Everything is read as text first: CLI11 finds options and values, the sentences are ours.
struct Typed {
    std::string profile, seed, seeds, time, cases, jobs, shard, timeout, colour, record;
};

void add_run_options(CLI::App& app, CommandOptions& o, Typed& t) {
    app.add_option("--profile", t.profile, "what is tried: a name or a .json file");
    app.add_option("--match", o.match, "laws to try, a glob such as masking.*; may be repeated")
        ->allow_extra_args(false);
    app.add_option("--seed", t.seed, "repeats a run; random if not given");
    app.add_option("--time", t.time, "time for all laws together, such as 60s or 5m");
    app.add_option("--cases", t.cases, "cases a law, instead of the profile's");
    app.add_option("--jobs", t.jobs, "workers at once (one a core)");
    app.add_option("--shard", t.shard, "i/n: part i, from 0, of n equal parts");
    app.add_option("--out", o.out, "folder of the results (attest-out)");
    app.add_option("--python", o.python, "interpreter for python: kernels");
    app.add_option("--timeout", t.timeout, "limit of one call of the kernel (10s)");
}

void add_screen_options(CLI::App& app, CommandOptions& o, Typed& t) {
    app.add_option("--color", t.colour, "auto, always or never");
    app.add_flag("--ascii", o.ascii, "no characters beyond ASCII");
}

void add_case_options(CLI::App& app, CommandOptions& o, Typed& t) {
    app.add_option("CASE", o.arguments, "a stored id, a file, a fixture's name or a line");
    app.add_option("--kernel", o.kernel, "the kernel; a stored case has its own");
    app.add_option("--law", o.law, "the law to judge by; a stored case has its own");
    app.add_option("--out", o.out, "folder of the results (attest-out)");
    app.add_option("--python", o.python, "interpreter for python: kernels");
    app.add_option("--timeout", t.timeout, "limit of one call of the kernel (10s)");
    add_screen_options(app, o, t);
}

void define(CLI::App& app, CommandOptions& o, Typed& t) {
    auto* list = app.add_subcommand("list", "what there is: laws, kernels, mutants, profiles, ...");
    list->add_option("WHAT", o.arguments, "laws [ID], kernels, mutants, profiles or fixtures");
    list->add_option("--match", o.match, "names to show, a glob")->allow_extra_args(false);
    add_screen_options(*list, o, t);

    auto* check = app.add_subcommand("check", "judge a kernel by the laws");
    check->add_option("KERNEL", o.arguments,
                      "cpu_flash, ./lib.so, ./file.json, python:module:function, exec:./program");
    add_run_options(*check, o, t);
    check->add_option("--resume", o.resume, "go on with the run in this folder");
    check->add_option("--record", t.record, "cases: keep a record of each");
    check->add_option("--source", o.source, "FILE:LINE of the kernel, named with each cause");
    add_screen_options(*check, o, t);

    add_case_options(*app.add_subcommand("replay", "try one case again; exit 1 while it fails"),
                     o, t);
    add_case_options(*app.add_subcommand("explain", "show one case: scores, mask, weights"), o,
                     t);

    auto* certify = app.add_subcommand("certify", "judge a kernel and write a certificate");
    certify->add_option("KERNEL", o.arguments, "as for check");
    add_run_options(*certify, o, t);
    add_screen_options(*certify, o, t);

    auto* describe = app.add_subcommand("describe", "a kernel's manifest, defaults written out");
    describe->add_option("KERNEL", o.arguments, "as for check");
    describe->add_option("--python", o.python, "interpreter for python: kernels");
    describe->add_option("--timeout", t.timeout, "limit of one call of the kernel (10s)");

    auto* fixture = app.add_subcommand("fixture", "write a case and its story to a file");
    fixture->add_option("FILE CASE", o.arguments,
                        "fixtures/NAME.json, and a line, a file, a stored id or a fixture's name");
    fixture->add_option("--story", o.story, "the mistake it is there to find, in one paragraph");
    fixture->add_option("--law", o.match, "a law that sees it, tried by check; may be repeated")
        ->allow_extra_args(false);
    fixture->add_flag("--replace", o.replace, "write over a file that exists");
    fixture->add_option("--out", o.out, "folder of the results (attest-out)");

    auto* bench = app.add_subcommand("bench", "measure the reference: errors, bounds, speed");
    bench->add_option("WHAT", o.arguments, "oracle: its errors, its bounds, its speed");
    bench->add_option("--time", t.time, "time for errors and bounds together (20s)");
    bench->add_option("--seed", t.seed, "draws other cases (1)");
    bench->add_option("--instructions", o.instructions, "AVX3, AVX2, ... (the best there is)");

    auto* audit = app.add_subcommand("audit", "try every planted bug by every law");
    audit->add_option("MUTANT", o.arguments, "planted bugs by their ids (all)");
    audit->add_option("--match", o.match, "laws to try, a glob")->allow_extra_args(false);
    audit->add_option("--cases", t.cases, "cases a law and seed (120)");
    audit->add_option("--seed", t.seed, "the first seed (1)");
    audit->add_option("--seeds", t.seeds, "a law must see a bug under so many seeds (1)");
    audit->add_option("--jobs", t.jobs, "planted bugs at once (one a core)");
    audit->add_option("--out", o.out, "folder of the results (attest-out)");

    for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();
    app.allow_extras();
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

[[noreturn]] void refuse_extra(const CLI::App& sub, const std::string& extra) {
    const std::string name = sub.get_name();
    if (extra.starts_with("-")) {
        const std::vector<std::string> names = option_names(sub);
        const std::string typed = extra.substr(0, extra.find('='));
        throw BadInput(
            "no option " + typed + " for " + name + suggestion(typed, names),
            {"attest " + name + " --help lists " + std::to_string(names.size()) + " options"});
    }
    const bool takes_a_line = name == "replay" || name == "explain" || name == "fixture";
    throw BadInput("one argument too many for " + name + ": " + extra,
                   {takes_a_line ? "quote a line with spaces: attest " + name +
                                       " \"b1 hq1 hkv1 tq2 tk1 d1 f32\""
                                 : "attest " + name + " --help says what it takes"});
}

[[noreturn]] void refuse_command(const CLI::App& app, const std::vector<std::string>& rest) {
    std::vector<std::string> names;
    std::string all;
    for (const CLI::App* sub : app.get_subcommands({})) {
        names.push_back(sub->get_name());
        all += (all.empty() ? "" : ", ") + sub->get_name();
    }
    const std::string what = rest.empty()                    ? "no command"
                             : rest.front().starts_with("-") ? "no option " + rest.front()
                                                             : "no command " + rest.front();
    throw BadInput(what + (rest.empty() ? "" : suggestion(rest.front(), names)),
                   {"one of " + all + "; attest --help"});
}

std::int64_t parse_count(const std::string& option, const std::string& text) {
    const auto value = parse_integer<std::int64_t>(text);
    if (!value || *value < 1) throw BadInput(option + " " + text + ": a whole number, at least 1");
    return *value;
}

void check_words(const CommandOptions& o) {
    const auto one_of = [](const std::string& option, const std::string& value,
                           const std::vector<std::string>& words) {
        if (std::find(words.begin(), words.end(), value) != words.end()) return;
        std::string all;
        for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
        throw BadInput(option + " " + value + ": one of " + all);
    };
    one_of("--color", o.colour, {"auto", "always", "never"});
    const std::size_t colon = o.source.rfind(':');
    if (!o.source.empty() &&
        (colon == std::string::npos || colon == 0 ||
         parse_integer<std::int64_t>(std::string_view(o.source).substr(colon + 1)).value_or(0) < 1))
        throw BadInput("--source " + o.source + ": FILE:LINE, such as kernels/mine.cu:120");
}

void convert(CommandOptions& o, const Typed& t) {
    o.profile = !t.profile.empty() ? t.profile : o.command == "certify" ? "serving" : "quick";
    if (!t.seed.empty()) {
        o.seed = parse_integer<std::uint64_t>(t.seed);
        if (!o.seed)
            throw BadInput("--seed " + t.seed + ": a whole number from 0 to 18446744073709551615");
    }
    if (!t.time.empty()) o.seconds = parse_duration("--time", t.time);
    if (!t.cases.empty()) o.cases = parse_count("--cases", t.cases);
    if (!t.seeds.empty()) o.seeds = parse_count("--seeds", t.seeds);
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    o.jobs = t.jobs.empty()
                 ? static_cast<int>(cores)
                 : static_cast<int>(std::min<std::int64_t>(1024, parse_count("--jobs", t.jobs)));
    if (!t.shard.empty()) parse_shard(t.shard, o.shard_index, o.shard_count);
    if (!t.timeout.empty())
        o.timeout = std::chrono::milliseconds(
            static_cast<std::int64_t>(std::ceil(1000 * parse_duration("--timeout", t.timeout))));
    if (!t.colour.empty()) o.colour = t.colour;
    if (!t.record.empty() && t.record != "cases")
        throw BadInput("--record " + t.record + ": cases is all that can be recorded");
    o.record_cases = !t.record.empty();
    check_words(o);
}

// An unset variable in a script is no value, and must not pass for none given.
void refuse_empty(const CLI::App& sub) {
    for (const CLI::Option* option : sub.get_options())
        for (const std::string& value : option->results())
            if (value.empty())
                throw BadInput(option->get_name() + " needs a value, and was given an empty one",
                               {"leave the option out, or give it one"});
}

// "--seed: 1 required TEXT missing" and its like.
[[noreturn]] void refuse_value(const std::string& complaint) {
    const std::size_t begin = complaint.find("--");
    const std::size_t end = complaint.find_first_of(": ", begin);
    const std::string option =
        begin == std::string::npos ? complaint : complaint.substr(begin, end - begin);
    throw BadInput(option + " needs one value");
}

}  // namespace

double parse_duration(const std::string& option, const std::string& text) {
    const std::size_t unit = text.find_first_not_of("0123456789.");
    const std::string word = unit == std::string::npos ? "" : text.substr(unit);
    const double factor = word == "ms"  ? 1e-3
                          : word == "s" ? 1
                          : word == "m" ? 60
                          : word == "h" ? 3600
                                        : 0;
    const auto number = parse_decimal(std::string_view(text).substr(0, unit));
    constexpr double seconds_max = 1e9;  // thirty years, which every clock can count
    if (factor == 0 || !number || !(*number > 0) || !(*number * factor <= seconds_max))
        throw BadInput(option + " " + text + ": a number and a unit, such as 60s or 5m");
    return *number * factor;
}

void parse_shard(const std::string& text, std::int64_t& index, std::int64_t& count) {
    const std::size_t slash = text.find('/');
    const auto i = parse_integer<std::int64_t>(std::string_view(text).substr(0, slash));
    const auto n = slash == std::string::npos
                       ? std::nullopt
                       : parse_integer<std::int64_t>(std::string_view(text).substr(slash + 1));
    if (!i || !n || *n < 1 || *i < 0 || *i >= *n)
        throw BadInput("--shard " + text + ": i/n with 0 <= i < n, such as 0/4");
    index = *i;
    count = *n;
}

CommandOptions parse_command_line(const std::vector<std::string>& argv) {
    CommandOptions o;
    Typed t;
    o.argv = argv;
    CLI::App app("attest decides whether an attention kernel is correct.", "attest");
    app.set_version_flag("--version", "attest " + std::string(attest_version()));
    app.footer(
        "Exit codes: 0 holds, 1 violated, 2 bad usage or input, 3 inconclusive or not "
        "complete,\n4 internal error.");
    define(app, o, t);
    std::vector<std::string> reversed(argv.rbegin(), argv.rend());
    try {
        app.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
        o.command = "help";
        const auto used = app.get_subcommands();
        o.help = used.empty() ? app.help() : used.front()->help("attest");
        return o;
    } catch (const CLI::CallForVersion& version) {
        o.command = "help";
        o.help = std::string(version.what()) + "\n";
        return o;
    } catch (const CLI::ParseError& error) {
        refuse_value(error.what());
    }
    const auto used = app.get_subcommands();
    if (used.empty() || !app.remaining(false).empty()) refuse_command(app, app.remaining(false));
    const CLI::App& sub = *used.front();
    if (!sub.remaining().empty()) refuse_extra(sub, sub.remaining().front());
    o.command = sub.get_name();
    refuse_empty(sub);
    const std::size_t most = o.command == "list" || o.command == "fixture" ? 2 : 1;
    if (o.command != "audit" && o.arguments.size() > most) refuse_extra(sub, o.arguments[most]);
    convert(o, t);
    return o;
}

}  // namespace attest::ci
