#include "ci/options.hpp"

#include <algorithm>

#include "ci/embedded.hpp"
#include "ci/manual.hpp"
#include "ci/manual_texts.hpp"
#include "ci/option_declarations.hpp"
#include "ci/suggest.hpp"
#include "ci/typed_options.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

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
    const CLI::Option* match = sub.get_option_no_throw("--match");
    if (match != nullptr && match->count() > 0)
        throw BadInput("one argument too many for " + name + ": " + extra,
                       {"a glob each: --match " + match->results().back() + " --match " + extra});
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
    const std::vector<std::string> manuals = manual_subjects();
    if (!rest.empty() && std::ranges::find(manuals, rest.front()) != manuals.end())
        throw BadInput(what + "; it is a manual", {"attest manual " + rest.front()});
    throw BadInput(what + (rest.empty() ? "" : suggestion(rest.front(), names)),
                   {"one of " + all +
                    "; attest --help; of kernels and manifests: attest manual interface; of what a "
                    "problem means: attest manual problem"});
}

// An unset variable in a script is no value, and must not pass for none given.
void refuse_empty(const CLI::App& sub) {
    for (const CLI::Option* option : sub.get_options())
        for (const std::string& value : option->results())
            if (value.empty())
                throw BadInput(
                    option->get_name() + " needs a value, and was given an empty one",
                    {option->get_name().starts_with("-") ? "leave the option out, or give it one"
                                                         : "name it"});
}

// "--seed: 1 required TEXT missing" and its like.
[[noreturn]] void refuse_value(const std::string& complaint) {
    const std::size_t begin = std::min(complaint.find("--"), complaint.size());
    throw BadInput(complaint.substr(begin, complaint.find_first_of(": ", begin) - begin) +
                   " needs one value");
}

}  // namespace

CommandOptions parse_command_line(const std::vector<std::string>& argv) {
    CommandOptions o;
    TypedOptions t;
    o.argv = argv;
    CLI::App app("attest decides whether an attention kernel is correct.", "attest");
    app.formatter(help_formatter());
    app.set_version_flag("--version", "attest " + std::string(attest_version()));
    app.footer(
        "Exit codes: 0 holds, 1 violated, 2 bad usage or input,\n3 inconclusive or not complete, "
        "4 internal error.");
    declare_options(app, o, t);
    std::vector<std::string> reversed(argv.rbegin(), argv.rend());
    if (!argv.empty() && argv.front() == "help") reversed.back() = "--help";
    try {
        app.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
        o.command = "help";
        const auto used = app.get_subcommands();
        if (argv.front() == "help" && used.empty() && argv.size() > 1)
            refuse_command(app, {argv[1]});
        o.help = fitted_help(used.empty() ? app.help() : used.front()->help("attest"));
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
    if (o.command == "completion" || o.command == "manual") {
        const std::string of = o.arguments.empty() ? "" : o.arguments.front();
        o.help = o.command == "manual" ? manual_page(app, of) : completion_script(app, of);
        o.command = "help";
    }
    const bool any_number = o.command == "report" || o.command == "audit" || o.command == "merge" ||
                            o.command == "verify";
    const bool two =
        o.command == "list" || o.command == "fixture" || o.command == "new" || o.command == "key";
    const std::size_t most = any_number ? o.arguments.size() : two ? 2 : 1;
    if (o.arguments.size() > most) refuse_extra(sub, o.arguments[most]);
    convert(o, t);
    return o;
}

}  // namespace attest::ci
