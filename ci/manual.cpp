#include "ci/manual.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "ci/manual_texts.hpp"
#include "ci/screen.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

/// An option that may be repeated takes one value each time: no "..." behind it.
class HelpFormatter : public CLI::Formatter {
public:
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text = CLI::Formatter::make_option_opts(option);
        const std::string more = " ...";
        if (!option->get_allow_extra_args() && text.ends_with(more))
            text.resize(text.size() - more.size());
        return text;
    }
};

/// What a value or an argument is completed to.
enum class Completed : std::uint8_t {
    nothing,
    kernel,
    profile,
    law,
    mutant,
    file,
    folder,
    colour,
    stored
};

Completed completed(const CLI::Option& option) {
    static const std::map<std::string, Completed> by_name{
        {"profile", Completed::profile}, {"match", Completed::law},
        {"law", Completed::law},         {"out", Completed::folder},
        {"resume", Completed::folder},   {"color", Completed::colour},
        {"kernel", Completed::kernel},   {"KERNEL", Completed::kernel},
        {"baseline", Completed::kernel}, {"candidate", Completed::kernel},
        {"MUTANT", Completed::mutant},   {"CASE", Completed::stored},
        {"WHAT", Completed::nothing},
    };
    const std::string name =
        option.get_lnames().empty() ? option.get_name() : option.get_lnames().front();
    const auto known = by_name.find(name);
    if (known != by_name.end()) return known->second;
    const bool path = option.get_description().find("FILE") != std::string::npos;
    return path || option.get_positional() ? Completed::file : Completed::nothing;
}

/// The words that a command begins with, where there are but a few.
std::string first_words(const CLI::App& command) {
    static const std::map<std::string, std::string> by_command{
        {"bench", "oracle"},
        {"completion", "bash zsh"},
        {"key", "new"},
        {"list", "laws kernels mutants profiles fixtures"},
        {"manual", fmt::format("{}", fmt::join(manual_subjects(), " "))},
        {"new", "c cpp cuda python triton"},
    };
    const auto known = by_command.find(command.get_name());
    return known == by_command.end() ? "" : known->second;
}

bool takes_value(const CLI::Option& option) {
    return option.get_items_expected_max() > 0;
}

/// "--out", and "-x" where it has one.
std::vector<std::string> spellings(const CLI::Option& option) {
    std::vector<std::string> list;
    for (const std::string& name : option.get_snames()) list.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) list.push_back("--" + name);
    return list;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

// What the lines of a list of attest begin with.
constexpr const char* names_of = R"(_attest_names() {
    "$program" list "$1" 2>/dev/null |
        sed -n '/^law  *statement/d; s/^\([A-Za-z][A-Za-z0-9_.:]*\)  .*/\1/p'
}
_attest_stored() {
    ls attest-out/cases 2>/dev/null | sed -n 's/^\([0-9a-f]\{8\}\).*[.]json$/\1/p'
}
)";

// In bash, by the word before; in the order of Completed.
constexpr const char* bash_words[] = {
    "",
    "$(compgen -W \"$(_attest_names kernels)\" -- \"$word\"; compgen -f -- \"$word\")",
    "$(compgen -W \"$(_attest_names profiles)\" -- \"$word\"; compgen -f -X '!*.json' -- "
    "\"$word\")",
    "$(compgen -W \"$(_attest_names laws)\" -- \"$word\")",
    "$(compgen -W \"$(_attest_names mutants)\" -- \"$word\")",
    "$(compgen -f -- \"$word\")",
    "$(compgen -d -- \"$word\")",
    "$(compgen -W 'auto always never' -- \"$word\")",
    "$(compgen -W \"$(_attest_stored)\" -- \"$word\"; compgen -f -- \"$word\")",
};

std::string bash_reply(Completed what) {
    return std::string("COMPREPLY=(") + bash_words[static_cast<std::size_t>(what)] + ")";
}

std::string bash_script(const CLI::App& app) {
    std::string commands, cases;
    for (const CLI::App* sub : app.get_subcommands({})) {
        commands += (commands.empty() ? "" : " ") + sub->get_name();
        std::string options, values, argument = "COMPREPLY=()";
        for (const CLI::Option* option : sub->get_options()) {
            if (option->get_positional()) {
                argument = bash_reply(completed(*option));
                continue;
            }
            std::string pattern;
            for (const std::string& name : spellings(*option)) {
                options += (options.empty() ? "" : " ") + name;
                pattern += (pattern.empty() ? "" : "|") + name;
            }
            if (takes_value(*option))
                values +=
                    "        " + pattern + ") " + bash_reply(completed(*option)) + "; return ;;\n";
        }
        if (const std::string words = first_words(*sub); !words.empty())
            argument = "if ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W '" + words +
                       "' -- \"$word\")); else " + argument + "; fi";
        cases += "    " + sub->get_name() + ")\n        case $before in\n" + values +
                 "        esac\n        if [[ $word == -* ]]; then COMPREPLY=($(compgen -W '" +
                 options + "' -- \"$word\")); else " + argument + "; fi ;;\n";
    }
    return std::string("# Completion of attest for bash, made by: attest completion bash\n") +
           names_of +
           "_attest() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local program=${COMP_WORDS[0]}\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W '" +
           commands +
           " --help --version' -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    case ${COMP_WORDS[1]} in\n" +
           cases + "    esac\n}\ncomplete -o filenames -F _attest attest\n";
}

constexpr const char* zsh_words[] = {
    ":value: ",
    ":kernel:{ compadd -- ${(f)\"$(_attest_names kernels)\"}; _files }",
    ":profile:{ compadd -- ${(f)\"$(_attest_names profiles)\"}; _files -g \"*.json\" }",
    ":law:{ compadd -- ${(f)\"$(_attest_names laws)\"} }",
    ":planted bug:{ compadd -- ${(f)\"$(_attest_names mutants)\"} }",
    ":file:_files",
    ":folder:_files -/",
    ":when:(auto always never)",
    ":stored case:{ compadd -- ${(f)\"$(_attest_stored)\"}; _files }",
};

std::string zsh_quoted(std::string text) {
    for (const char* special : {"[", "]", ":"})
        text = replaced(text, special, std::string("\\") + special);
    return replaced(text, "'", "'\\''");
}

std::string zsh_script(const CLI::App& app) {
    std::string commands, cases;
    for (const CLI::App* sub : app.get_subcommands({})) {
        commands +=
            "        '" + sub->get_name() + ":" + zsh_quoted(sub->get_description()) + "'\n";
        cases += "    " + sub->get_name() + ")\n        _arguments";
        for (const CLI::Option* option : sub->get_options()) {
            const std::string words = zsh_words[static_cast<std::size_t>(completed(*option))];
            if (option->get_positional() && !first_words(*sub).empty())
                cases += " \\\n            '1:what:(" + first_words(*sub) + ")'";
            if (option->get_positional()) cases += " \\\n            '*" + words + "'";
            for (const std::string& name : spellings(*option))
                cases += " \\\n            '*" + name + "[" +
                         zsh_quoted(option->get_description()) + "]" +
                         (takes_value(*option) ? words : "") + "'";
        }
        cases += " ;;\n";
    }
    return std::string("#compdef attest\n# made by: attest completion zsh\n") + names_of +
           "_attest() {\n    local -a commands=(\n" + commands +
           "    )\n    if ((CURRENT == 2)); then _describe command commands; return; fi\n"
           "    local program=$words[1] command=$words[2]\n"
           "    shift words; ((CURRENT--))\n"
           "    case $command in\n" +
           cases + "    esac\n}\n_attest \"$@\"\n";
}

std::string roff(std::string text) {
    text = replaced(replaced(std::move(text), "\\", "\\e"), "-", "\\-");
    return text.starts_with(".") || text.starts_with("'") ? "\\&" + text : text;
}

void describe(const CLI::Option& option, std::string& page) {
    page += ".TP\n.B " + [&] {
        if (option.get_positional()) return roff(option.get_name());
        std::string names;
        for (const std::string& name : spellings(option))
            names += (names.empty() ? "" : ", ") + roff(name);
        return names;
    }();
    page += "\n" + roff(option.get_description()) + "\n";
}

}  // namespace

std::string fitted_help(const std::string& help) {
    constexpr int width = 80;
    constexpr std::size_t text_column = 30;  // CLI11's, of what an option is for
    std::istringstream lines(help);
    std::string out;
    for (std::string line; std::getline(lines, line);) {
        const bool has_column = line.size() > text_column && line.front() == ' ';
        const std::size_t at = columns_of(line) <= width ? line.size()
                               : has_column              ? text_column
                                                         : 0;
        std::string margin = line.substr(0, at);
        if (at == line.size())
            out += line + "\n";
        else
            for (const std::string& part : wrap(line.substr(at), width - static_cast<int>(at))) {
                out += margin + part + "\n";
                margin.assign(at, ' ');
            }
    }
    return out;
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
    if (shell == "bash") return bash_script(app);
    if (shell == "zsh") return zsh_script(app);
    throw BadInput("completion: " + (shell.empty() ? "no shell" : "no shell " + shell),
                   {"bash or zsh: attest completion bash"});
}

std::string manual_page(const CLI::App& app, const std::string& subject) {
    if (!subject.empty()) {
        if (const auto text = manual_text(subject)) return *text;
        throw BadInput("manual " + subject + ": no such manual, and no such section of one",
                       {fmt::format("attest manual, or attest manual with one of {}",
                                    fmt::join(manual_subjects(), ", "))});
    }
    std::string page = ".TH ATTEST 1\n.SH NAME\nattest \\- " +
                       roff(app.get_description().substr(std::string("attest ").size())) +
                       "\n.SH SYNOPSIS\n.B attest\n.I COMMAND\n[\\fIargument\\fR ...] "
                       "[\\fIoption\\fR ...]\n.SH COMMANDS\n";
    for (const CLI::App* sub : app.get_subcommands({})) {
        page += ".SS attest " + roff(sub->get_name()) + "\n" + roff(sub->get_description()) + "\n";
        for (const CLI::Option* option : sub->get_options()) describe(*option, page);
    }
    return page + ".SH EXIT STATUS\n" + roff(replaced(app.get_footer(), "\n", " ")) + "\n";
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
    return std::make_shared<HelpFormatter>();
}

}  // namespace attest::ci
