#include "ci/sanitizer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ci/number.hpp"
#include "ci/options.hpp"

namespace attest::ci {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t findings_max = 3;
// The last line of a replay that came to its end. Without it "0 errors" says nothing: the tool also
// prints that of a program that never ran.
constexpr std::string_view replayed = "   exit ";

struct Ended {
    std::string reason;  ///< why it is not to be relied on; empty: it ran
    std::string output;
};

/// Starts it with both outputs in `file`, in a process group of its own, so that all of it can be
/// ended. 0, or the number of the error.
int start(const std::vector<std::string>& command, int file, pid_t& pid) {
    std::vector<char*> arguments;
    for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, file, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, file, STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error =
        posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

std::string text_in(int file) {
    std::string text(static_cast<std::size_t>(std::max<off_t>(::lseek(file, 0, SEEK_END), 0)), 0);
    const ssize_t got = ::pread(file, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
}

/// Waits for the end, or makes one. Why it had to; empty: it ended by itself.
std::string wait_for(pid_t pid, const std::atomic<int>& interrupted) {
    const std::chrono::duration<double> limit(parse_duration("--timeout", sanitizer_limit));
    const Clock::time_point began = Clock::now();
    std::string reason;
    while (reason.empty() && ::waitpid(pid, nullptr, WNOHANG) == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (interrupted > 0)
            reason = "the run was interrupted";
        else if (Clock::now() - began >= limit)
            reason = fmt::format("it took longer than {}", sanitizer_limit);
    }
    ::kill(-pid, SIGKILL);  // and what it left behind
    if (!reason.empty()) ::waitpid(pid, nullptr, 0);
    return reason;
}

Ended run(const std::vector<std::string>& command, const std::atomic<int>& interrupted) {
    if (interrupted > 0) return {"the run was interrupted", ""};
    const int file = ::memfd_create("output", MFD_CLOEXEC);
    pid_t pid = -1;
    const int error = start(command, file, pid);
    Ended ended;
    if (error == ENOENT) {
        ended.reason = command[0] + " is not on the PATH";
    } else if (error != 0) {
        ended.reason = fmt::format("{} cannot be started: {}", command[0], std::strerror(error));
    } else {
        ended.reason = wait_for(pid, interrupted);
        ended.output = text_in(file);
    }
    ::close(file);
    return ended;
}

void keep(const std::string& text, const fs::path& file) {
    if (text.empty()) return;
    std::error_code failure;  // then nothing is kept: what counts is in the record
    fs::create_directories(file.parent_path(), failure);
    std::ofstream(file, std::ios::binary) << text;
}

std::string first_line(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(" \r\n");
    return begin == std::string::npos ? "nothing"
                                      : text.substr(begin, text.find('\n', begin) - begin);
}

/// Why the absence of findings says nothing; empty where it says that there are none.
std::string why_not_clean(const Ended& ended, const diagnosis::SanitizerReport& report) {
    if (!ended.reason.empty()) return ended.reason;
    if (!report.trouble.empty()) return report.trouble;
    if (!report.errors) return "it printed no summary, but " + first_line(ended.output);
    if (*report.errors != 0)
        return counted(*report.errors, "error") + " told in words that are not known";
    if (ended.output.find(replayed) == std::string::npos) return "the case was not replayed";
    return {};
}

diagnosis::SanitizerEntry entry_of(const std::string& tool, const Ended& ended) {
    diagnosis::SanitizerReport report = diagnosis::read_sanitizer_report(ended.output);
    diagnosis::SanitizerEntry entry{
        tool, diagnosis::SanitizerEntry::Verdict::found, "", report.errors, {}};
    if (report.findings.empty()) {
        entry.reason = why_not_clean(ended, report);
        entry.verdict = entry.reason.empty() ? diagnosis::SanitizerEntry::Verdict::clean
                                             : diagnosis::SanitizerEntry::Verdict::not_run;
    }
    if (report.findings.size() > findings_max) report.findings.resize(findings_max);
    entry.findings = std::move(report.findings);
    return entry;
}

std::string sentence_of(const diagnosis::SanitizerEntry& entry) {
    if (entry.verdict == diagnosis::SanitizerEntry::Verdict::clean) return "no errors";
    if (entry.verdict == diagnosis::SanitizerEntry::Verdict::not_run)
        return "not run: " + entry.reason;
    const diagnosis::SanitizerFinding& first = entry.findings.front();
    std::string says = first.says;
    if (!first.kernel.empty()) says += " in " + first.kernel;
    if (entry.errors.value_or(0) > 1) says += " (" + counted(*entry.errors, "error") + ")";
    return says;
}

}  // namespace

std::vector<diagnosis::SanitizerEntry> ask_sanitizer(const std::vector<std::string>& command,
                                                     const std::string& prefix,
                                                     const std::atomic<int>& interrupted) {
    std::vector<diagnosis::SanitizerEntry> entries;
    for (const std::string tool : {"memcheck", "racecheck", "initcheck", "synccheck"}) {
        // The kernel runs in a child of the replay. What calls of the CUDA library return is the
        // kernel's to look at: drivers answer questions about what they lack with errors, too.
        std::vector<std::string> whole{"compute-sanitizer", "--tool", tool, "--target-processes",
                                       "all"};
        if (tool == "memcheck") whole.insert(whole.end(), {"--report-api-errors", "no"});
        whole.insert(whole.end(), command.begin(), command.end());
        const Ended ended = run(whole, interrupted);
        keep(ended.output, prefix + tool + ".txt");
        entries.push_back(entry_of(tool, ended));
    }
    return entries;
}

std::vector<std::string> sanitizer_sentences(
    const std::vector<diagnosis::SanitizerEntry>& entries) {
    std::vector<std::pair<std::string, std::string>> said;  // sentence, tools
    for (const diagnosis::SanitizerEntry& entry : entries) {
        const std::string sentence = sentence_of(entry);
        const auto same = std::find_if(said.begin(), said.end(),
                                       [&](const auto& one) { return one.first == sentence; });
        if (same == said.end())
            said.emplace_back(sentence, entry.tool);
        else
            same->second += ", " + entry.tool;
    }
    std::vector<std::string> lines;
    for (const auto& [sentence, tools] : said) lines.push_back(tools + ": " + sentence);
    return lines;
}

}  // namespace attest::ci
