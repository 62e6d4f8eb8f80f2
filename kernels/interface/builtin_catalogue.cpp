#include "kernels/interface/builtin_catalogue.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>

#include "kernels/interface/worker_directory.hpp"
#include "reference/problem/errors.hpp"

namespace attest::kernel {
namespace {

/// What it prints; none where it was killed, as a machine out of memory does.
std::optional<std::string> output_of_one_list() {
    std::string program = worker_program();
    std::string option = "--list";
    std::array<char*, 3> arguments = {program.data(), option.data(), nullptr};
    std::array<int, 2> ends{};
    require(::pipe2(ends.data(), O_CLOEXEC) == 0, "a pipe can be made");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t pid = 0;
    const int failed =
        posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> buffer{};
    ssize_t got = 0;
    while (failed == 0 && (got = ::read(ends[0], buffer.data(), buffer.size())) > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = 0;
    const bool ran = failed == 0 && ::waitpid(pid, &status, 0) == pid;
    if (ran && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return std::nullopt;
    if (!ran || status != 0) throw InternalError(program + " --list did not run");
    return text;
}

std::string output_of_list() {
    constexpr int attempts = 3;
    for (int attempt = 0; attempt < attempts; ++attempt)
        if (auto text = output_of_one_list()) return *std::move(text);
    throw InternalError(worker_program() + " --list was killed each time");
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

/// The columns of a planted bug that are one text each, in their order.
template <typename AnyMutant, typename Visit>
void each_text(AnyMutant& mutant, const Visit& visit) {
    for (auto* text : {&mutant.id, &mutant.kernel, &mutant.bug_class, &mutant.operation,
                       &mutant.change, &mutant.trigger, &mutant.source, &mutant.diagnosis})
        visit(*text);
}

constexpr std::string_view equivalent = "equivalent";

struct Catalogue {
    std::string text = output_of_list();  // what the mutants' views look into
    std::vector<BuiltinEntry> entries;
    std::vector<Mutant> mutants;

    Catalogue() {
        for (const std::string_view line : split(text, '\n')) {
            const std::vector<std::string_view> columns = split(line, '\t');
            require(columns.size() == 3 || columns.size() == 12,
                    "a line of attest_worker --list has 3 columns, a planted bug's 12");
            entries.push_back({std::string(columns[0]), std::string(columns[1]),
                               std::stoll(std::string(columns[2]))});
            if (columns.size() > 3) add_mutant(columns);
        }
        std::sort(mutants.begin(), mutants.end(),
                  [](const Mutant& a, const Mutant& b) { return a.id < b.id; });
    }

    void add_mutant(const std::vector<std::string_view>& columns) {
        Mutant& mutant = mutants.emplace_back();
        std::size_t column = 3;
        each_text(mutant, [&](std::string_view& field) { field = columns[column++]; });
        mutant.equivalent = columns[column] == equivalent;
        if (mutant.equivalent) return;
        for (const std::string_view law : split(columns[column], ' ')) mutant.must.add(law);
    }
};

const Catalogue& catalogue_of_worker() {
    static const Catalogue told;
    return told;
}

}  // namespace

const std::vector<BuiltinEntry>& builtin_catalogue() {
    return catalogue_of_worker().entries;
}

std::span<const Mutant> museum() {
    return catalogue_of_worker().mutants;
}

std::string catalogue_line(const BuiltinKernel& kernel, std::string_view summary) {
    std::string line;
    const auto add = [&line](std::string_view text) {
        require(text.find_first_of("\t\n") == std::string_view::npos,
                "what is told of a built-in kernel is one line without tabs");
        line.append(line.empty() ? "" : "\t").append(text);
    };
    add(kernel.id);
    add(summary);
    add(std::to_string(kernel.cases));
    if (kernel.mutant == nullptr) return line;
    each_text(*kernel.mutant, add);
    std::string must;
    for (const std::string_view law : kernel.mutant->must)
        must.append(must.empty() ? "" : " ").append(law);
    add(kernel.mutant->equivalent ? equivalent : must);
    return line;
}

}  // namespace attest::kernel
