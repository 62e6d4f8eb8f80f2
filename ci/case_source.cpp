#include "ci/case_source.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "ci/check_screen.hpp"
#include "ci/fixture.hpp"
#include "ci/record.hpp"
#include "ci/screen.hpp"
#include "ci/suggest.hpp"
#include "properties/search/store.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/json.hpp"

namespace attest::ci {

namespace {

namespace fs = std::filesystem;

bool is_id(std::string_view text) {
    return text.size() >= 4 && text.size() <= 64 &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Too short to be meant for one, but no word of a line either: those begin with a letter.
bool is_short_id(std::string_view text) {
    return !text.empty() && text.size() < 4 && text[0] >= '0' && text[0] <= '9' &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string read_whole(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw BadInput(path + ": cannot be read");
    return text.str();
}

// The record of the run whose results lie here; empty where there is none that can be read.
RunReport report_in(const std::string& directory, std::vector<std::string>& unread) {
    const std::string path = directory + "/result.jsonl";
    try {
        if (fs::exists(path)) return read_records(path);
    } catch (const BadInput& broken) {
        unread.push_back(broken.what());  // the cases beside it stand
    }
    return {};
}

// Every case stored here whose id begins with this, by full id.
std::map<std::string, NamedCase> stored(const std::string& prefix, const std::string& directory,
                                        std::vector<std::string>& unread) {
    std::map<std::string, NamedCase> found;
    const RunReport report = report_in(directory, unread);
    const KernelReport& kernel = report.run.kernel;  // as it was typed in that run
    for (const search::StoredFailure& failure : stored_failures(directory, unread))
        if (failure.id.starts_with(prefix))
            found[failure.id] = {failure.tried, failure.law, failure.kernel, failure.before};
    const auto add = [&](const std::string& id, NamedCase named) {
        if (id.starts_with(prefix) || prefix.starts_with(id))
            found.emplace(search::failure_id(named.tried, named.law), std::move(named));
    };
    for (const diagnosis::CounterexampleReport& one : report.counterexamples) {
        const search::Counterexample& c = one.example;
        add(search::short_id(c.id), {c.smallest, c.law, kernel.typed, c.confirmed.before});
    }
    for (const search::CaseReport& one : report.cases)
        add(one.id, {one.record.tried, one.law, kernel.typed, {}});
    return found;
}

NamedCase by_id(const std::string& id, const std::string& directory) {
    std::vector<std::string> unread;
    const std::map<std::string, NamedCase> found = stored(id, directory, unread);
    if (found.size() == 1) {
        for (const std::string& file : unread)
            std::fprintf(stderr, "attest: not read: %s\n", clean(file).c_str());
        return found.begin()->second;
    }
    if (found.empty()) {
        std::vector<std::string> details = {"--out names the folder of the run"};
        for (const std::string& file : unread) details.push_back("not read: " + file);
        throw BadInput(id + ": no case stored in " + directory + " has an id that begins with it",
                       details);
    }
    std::string list;
    for (const auto& [full, named] : found)
        list += (list.empty() ? "" : ", ") + search::short_id(full) + " (" + named.law + ")";
    throw BadInput(id + ": " + std::to_string(found.size()) +
                   " stored cases have ids that begin with it: " + list);
}

NamedCase by_path(const std::string& path) {
    const std::string text = read_whole(path);
    const JsonSource source{text, path};
    const Json object = parse_json(source);
    if (object.find("story") != nullptr)
        return {fixtures::fixture_from_json(text, path).tried, "", "", {}};
    if (object.find("law") == nullptr) return {case_from_json(text, path), "", "", {}};
    // A stored failure, wherever it lies and whatever its file is called by now.
    search::StoredFailure failure = search::load_failure(path);
    return {std::move(failure.tried), failure.law, failure.kernel, std::move(failure.before)};
}

}  // namespace

const law::Property& law_named(const std::string& id, const std::string& option) {
    if (const law::Property* law = law::find_property(id)) return *law;
    std::vector<std::string> ids;
    for (const law::Property& law : law::catalogue()) ids.push_back(law.id);
    throw BadInput(option + id + ": no law of this name" + suggestion(id, ids),
                   {"attest list laws shows them"});
}

std::vector<search::StoredFailure> stored_failures(const std::string& directory,
                                                   std::vector<std::string>& unread) {
    const KernelReport kernel = report_in(directory, unread).run.kernel;
    auto failures = search::load_failures(directory + "/cases", &unread);
    for (search::StoredFailure& failure : failures)
        if (failure.kernel == kernel.id) failure.kernel = kernel.typed;
    return failures;
}

NamedCase find_case(const std::string& text, const std::string& out_directory) {
    if (text.ends_with(".json")) return by_path(text);
    if (is_id(text)) return by_id(text, out_directory);
    std::error_code none;
    if (fs::exists(text, none))
        throw BadInput(text + ": this is no case file",
                       {"a case file ends in .json; else a stored id, a fixture's name or a line"});
    if (is_short_id(text)) {
        std::vector<std::string> unread;
        if (!stored(text, out_directory, unread).empty()) return by_id(text, out_directory);
    }
    std::vector<std::string> names;
    for (const auto& [name, fixture] : builtin_fixtures()) {
        if (name == text) return {fixture.tried, "", "", {}};
        names.push_back(name);
    }
    // One word that is no field of a line is the name of something: say what there is.
    const bool word = text.find(' ') == std::string::npos && text.find('_') != std::string::npos;
    if (word)
        throw BadInput(text + ": no fixture of this name" + suggestion(text, names),
                       {"attest list fixtures shows them"});
    return {parse_case(text), "", "", {}};
}

kernel::KernelSpec kernel_for(const NamedCase& named, const CommandOptions& options) {
    const std::string text = options.kernel.empty() ? named.kernel : options.kernel;
    if (text.empty())
        throw BadInput(options.command + ": which kernel? The case does not say",
                       {"attest " + options.command + " CASE --kernel KERNEL"});
    kernel::KernelSpec spec = kernel::parse_kernel_spec(text, options.python);
    const std::string python = python_option(options.python);
    if (options.kernel.empty())
        allow_kernel(spec, options.command,
                     "attest " + options.command +
                         (options.arguments.empty() ? "" : " " + clean(options.arguments.front())) +
                         " --kernel " + clean(text) + (python.empty() ? "" : " " + python) +
                         out_option(options.out));
    return spec;
}

void allow_kernel(const kernel::KernelSpec& named, const std::string& command,
                  const std::string& remedy) {
    if (named.interface == kernel::KernelInterface::builtin) return;
    const std::string name = clean(named.text);
    if (isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0) {
        std::fprintf(stderr, "attest: the file names %s: run it? [y/N] ", name.c_str());
        std::string answer;
        if (std::getline(std::cin, answer) && (answer == "y" || answer == "yes")) return;
    }
    throw BadInput(command + ": the file names " + name + ", and a file alone does not start it",
                   {remedy});
}

}  // namespace attest::ci
