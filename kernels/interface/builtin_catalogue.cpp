#include "kernels/interface/builtin_catalogue.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "kernels/interface/worker_directory.hpp"
#include "reference/problem/errors.hpp"

namespace attest {
namespace {

std::string output_of_list() {
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
    if (failed != 0 || ::waitpid(pid, &status, 0) != pid || status != 0) {
        throw InternalError(program + " --list did not run");
    }
    return text;
}

std::vector<BuiltinEntry> read_catalogue() {
    const std::string text = output_of_list();
    std::vector<BuiltinEntry> entries;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        const std::size_t tab = std::min(line.find('\t'), line.size());
        entries.push_back({line.substr(0, tab), tab < line.size() ? line.substr(tab + 1) : ""});
        at = end + 1;
    }
    return entries;
}

}  // namespace

const std::vector<BuiltinEntry>& builtin_catalogue() {
    static const std::vector<BuiltinEntry> entries = read_catalogue();
    return entries;
}

}  // namespace attest
