#include <fmt/format.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "ci/commands.hpp"
#include "ci/exit_code.hpp"
#include "ci/gpu_oracle.hpp"
#include "ci/journal.hpp"
#include "ci/screen.hpp"
#include "kernels/worker/session.hpp"
#include "reference/problem/errors.hpp"

namespace attest::ci {

namespace {

constexpr std::size_t details_max = 4;

// One line "attest: WHERE: WHAT", then at most four indented ones; wrapped, never cut.
void print_error(std::string_view line, const std::vector<std::string>& details) {
    Screen screen(style_of(STDERR_FILENO, "auto", false));
    screen.line(screen.bad("attest:") + " " + std::string(line));
    for (std::size_t n = 0; n < details.size() && n < details_max; ++n) {
        // A caret line must stay under its text: what is too wide is wrapped, spaces are kept.
        const std::string text = "        " + details[n];
        const bool caret = details[n].find_first_not_of(" |^") == std::string::npos;
        screen.line(caret ? screen.bad(text) : text);
    }
    std::fputs(screen.text().c_str(), stderr);
}

/// --env of a variable that is not there gives the kernel nothing.
void tell_unset(const CommandOptions& options) {
    for (const std::string& name : options.variables)
        if (std::getenv(name.c_str()) == nullptr)
            print_error("--env " + name + ": is not set here, so the kernel is not given it", {});
}

int run(const CommandOptions& options) {
    tell_unset(options);
    if (options.command == "help") {
        write_out(options.help);
        return exit_holds;
    }
    if (options.command == "list") return list_command(options);
    if (options.command == "check") return check_command(options);
    if (options.command == "replay") return replay_command(options);
    if (options.command == "explain") return explain_command(options);
    if (options.command == "certify") return certify_command(options);
    if (options.command == "verify") return verify_command(options);
    if (options.command == "merge") return merge_command(options);
    if (options.command == "key") return key_command(options);
    if (options.command == "gate") return gate_command(options);
    if (options.command == "report") return report_command(options);
    if (options.command == "audit") return audit_command(options);
    if (options.command == "bench") return bench_command(options);
    if (options.command == "fixture") return fixture_command(options);
    if (options.command == "new") return new_command(options);
    require(options.command == "describe", "every command has a function");
    return describe_command(options);
}

}  // namespace

void write_out(const std::string& text) {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    // Who reads no further, as `head` does, has had enough.
    if (!written && errno != EPIPE) throw InternalError("standard output cannot be written");
}

void make_out_folder(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw BadInput("--out " + folder + ": cannot be made: " + error.message());
}

namespace {

/// Memory that was used is kept for the next case. Given back, as the C library does with large
/// blocks, its pages are cleared again each time: at 131072 keys more work than the attention.
void keep_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);  // never
#endif
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
    keep_memory();
    // A reader that goes away, and a file limit, are errors of a write, not the end of the program.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    offer_gpu_oracle();
    try {
        return run(parse_command_line(std::vector<std::string>(argv + 1, argv + argc)));
    } catch (const BadInput& error) {
        print_error(error.what(), error.details());
        return exit_bad_input;
    } catch (const worker::LoadCrash& error) {
        print_error(error.what(), error.details());
        return exit_inconclusive;
    } catch (const worker::KernelGone& error) {
        print_error(error.what(), error.details());
        return exit_inconclusive;
    } catch (const worker::KernelDied& error) {
        print_error(error.what(), {"attest check judges it by this too"});
        return exit_inconclusive;
    } catch (const OutputFailed& error) {
        print_error(error.what(), error.details());
        return exit_internal;
    } catch (const std::exception& error) {
        print_error(error.what(), {"an error of attest or of this machine, not of the kernel"});
        return exit_internal;
    }
}

}  // namespace attest::ci
