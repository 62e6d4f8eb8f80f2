#include "kernels/worker/discipline.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/worker/protocol.hpp"

namespace attest::worker {
namespace {

/// Prints go to the host, which keeps the last of each call, or are appended to the file that
/// ATTEST_WORKER_OUTPUT names. Line by line: what stands in a buffer dies with the process.
void redirect_output() {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    constexpr const char* variable = "ATTEST_WORKER_OUTPUT";
    char* const path = std::getenv(variable);
    if (path == nullptr) return;
    const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    char* const begin = path - std::strlen(variable) - 1;
    ::unsetenv(variable);
    std::fill_n(begin, std::strlen(begin), '\0');
    if (file < 0) return;
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    if (file > STDERR_FILENO) ::close(file);
}

/// Where the machine runs out of memory it is this process that has to go, not its host.
void go_first() {
    const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t wrote = ::write(file, "1000", 4);
    ::close(file);
}

}  // namespace

void die_with_parent() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The host may have died before the line above: then its end of the socket is closed.
    pollfd socket{protocol::socket_fd, 0, 0};
    if (::poll(&socket, 1, 0) != 0) ::_exit(0);
}

void forget_names(int argc, char** argv) {
    constexpr const char* name = "worker";
    for (int i = 0; i < argc; ++i) std::fill_n(argv[i], std::strlen(argv[i]), '\0');
    // The file's own name lies there, and is longer.
    std::copy_n(name, std::strlen(name), argv[0]);
    ::prctl(PR_SET_NAME, name);
}

void accept_discipline() {
    die_with_parent();
    redirect_output();
    go_first();
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    // Without an end to the stack a runaway recursion would eat the machine instead of faulting.
    rlimit stack{};
    if (::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur > protocol::stack_bytes_max) {
        stack.rlim_cur = protocol::stack_bytes_max;
        ::setrlimit(RLIMIT_STACK, &stack);
    }
}

}  // namespace attest::worker
