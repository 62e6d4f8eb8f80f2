#include "kernels/worker/spawner.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "kernels/worker/protocol_process.hpp"
#include "reference/problem/errors.hpp"

namespace attest::worker {
namespace {

struct Request {
    const WorkerCommand* command = nullptr;
    std::promise<StartedWorker> started;
};

/// A process has the processors of the thread that starts it: this one, for as long as this lives.
class OnProcessors {
public:
    explicit OnProcessors(Processors which) {
        CPU_ZERO(&before_);
        narrowed_ =
            which == Processors::one && ::sched_getaffinity(0, sizeof before_, &before_) == 0;
        if (!narrowed_) return;
        cpu_set_t one;
        CPU_ZERO(&one);
        int first = 0;
        while (first + 1 < CPU_SETSIZE && !CPU_ISSET(first, &before_)) ++first;
        CPU_SET(first, &one);
        ::sched_setaffinity(0, sizeof one, &one);
    }
    ~OnProcessors() {
        if (narrowed_) ::sched_setaffinity(0, sizeof before_, &before_);
    }
    OnProcessors(const OnProcessors&) = delete;
    OnProcessors& operator=(const OnProcessors&) = delete;

private:
    cpu_set_t before_;
    bool narrowed_ = false;
};

/// What the child needs to become the program. It runs in the host's memory until then, the
/// starting thread asleep: system calls only.
struct Becoming {
    char* const* arguments;
    char* const* environment;
    int socket_fd, memory_fd, output_fd, end_fd, program_fd;
    bool in_user_namespace = false;
    int error = 0;
};

/// The right to mount, which a user namespace gives and becoming another program would take.
void keep_right_to_mount() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct rights[2]{};
    if (::syscall(SYS_capget, &header, rights) != 0) return;
    rights[0].inheritable |= 1u << CAP_SYS_ADMIN;
    ::syscall(SYS_capset, &header, rights);
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
}

int become(void* data) {
    auto& becoming = *static_cast<Becoming*>(data);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setsid();  // away from the terminal, too
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    ::dup2(becoming.output_fd, STDOUT_FILENO);
    ::dup2(becoming.output_fd, STDERR_FILENO);
    ::dup2(becoming.socket_fd, protocol::socket_fd);
    ::dup2(becoming.memory_fd, protocol::memory_fd);
    // Here, not in the worker: what is preloaded into it (compute-sanitizer) opens its own before
    // main() and is lost without them.
    if (becoming.end_fd >= 0) ::dup2(becoming.end_fd, protocol::end_fd);
    const int program = protocol::end_fd + 1;
    if (becoming.program_fd >= 0) ::dup3(becoming.program_fd, program, O_CLOEXEC);
    if (becoming.end_fd < 0) ::close(protocol::end_fd);
    ::close_range(becoming.program_fd >= 0 ? program + 1 : program, ~0u, 0);
    if (becoming.in_user_namespace) keep_right_to_mount();
    // Where the machine runs nothing from memory, the file itself.
    if (becoming.program_fd >= 0)
        ::execveat(program, "", becoming.arguments, becoming.environment, AT_EMPTY_PATH);
    ::execve(becoming.arguments[0], becoming.arguments, becoming.environment);
    becoming.error = errno;
    ::_exit(127);
}

/// A copy of a program in memory; -1 where it cannot be made.
int copy_in_memory(const std::string& path) {
    const int from = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const int copy = ::memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat file {};
    bool whole = from >= 0 && copy >= 0 && ::fstat(from, &file) == 0;
    off_t done = 0;
    while (whole && done < file.st_size)
        whole = ::sendfile(copy, from, &done, static_cast<std::size_t>(file.st_size - done)) > 0;
    whole = whole && ::fcntl(copy, F_ADD_SEALS,
                             F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0;
    if (from >= 0) ::close(from);
    if (!whole && copy >= 0) ::close(copy);
    return whole ? copy : -1;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts)
        pointers.push_back(const_cast<char*>(text.c_str()));  // execve does not write
    pointers.push_back(nullptr);
    return pointers;
}

StartedWorker spawn(const WorkerCommand& command) {
    const std::vector<char*> arguments = pointers_to(command.arguments);
    const std::vector<char*> environment = pointers_to(command.environment);
    // The duplicates lie above every target, so that no dup2 overwrites what the next one needs.
    const int above = protocol::end_fd + 2;
    static const int nameless_program = copy_in_memory(command.arguments.front());
    Becoming becoming{arguments.data(),
                      environment.data(),
                      ::fcntl(command.socket_fd, F_DUPFD_CLOEXEC, above),
                      ::fcntl(command.memory_fd, F_DUPFD_CLOEXEC, above),
                      ::fcntl(command.output_fd, F_DUPFD_CLOEXEC, above),
                      command.end_fd >= 0 ? ::fcntl(command.end_fd, F_DUPFD_CLOEXEC, above) : -1,
                      command.nameless && nameless_program >= 0
                          ? ::fcntl(nameless_program, F_DUPFD_CLOEXEC, above)
                          : -1};
    constexpr std::size_t stack_bytes = 64 * 1024;
    std::vector<std::max_align_t> stack(stack_bytes / sizeof(std::max_align_t));
    const OnProcessors on(command.processors);
    constexpr int own = CLONE_NEWPID | CLONE_NEWNS;
    StartedWorker started;
    // With the rights to have namespaces; else with a user namespace that gives them; else without.
    for (const int namespaces : {own, own | CLONE_NEWUSER, 0}) {
        if (namespaces != 0 && !command.namespaces) continue;
        becoming.error = 0;
        becoming.in_user_namespace = (namespaces & CLONE_NEWUSER) != 0;
        started.pid = ::clone(&become, stack.data() + stack.size(),
                              CLONE_VM | CLONE_VFORK | SIGCHLD | namespaces, &becoming);
        started.in_namespace = namespaces != 0;
        if (started.pid > 0) break;
        becoming.error = errno;
    }
    ::close(becoming.socket_fd);
    ::close(becoming.memory_fd);
    ::close(becoming.output_fd);
    if (becoming.end_fd >= 0) ::close(becoming.end_fd);
    if (becoming.program_fd >= 0) ::close(becoming.program_fd);
    if (started.pid > 0 && becoming.error == 0) return started;
    if (started.pid > 0) ::waitpid(started.pid, nullptr, 0);
    throw InternalError("cannot start " + command.arguments.front() + ": " +
                        std::strerror(becoming.error));
}

class Spawner {
public:
    Spawner() {
        std::thread([this] { work(); }).detach();
    }

    StartedWorker start(Request& request) {
        std::future<StartedWorker> started = request.started.get_future();
        {
            const std::lock_guard lock(mutex_);
            queue_.push_back(&request);
        }
        arrived_.notify_one();
        return started.get();
    }

private:
    [[noreturn]] void work() {
        // Signals are for the threads of the program, not for this one.
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
        for (;;) {
            std::unique_lock lock(mutex_);
            arrived_.wait(lock, [this] { return !queue_.empty(); });
            Request* request = queue_.front();
            queue_.pop_front();
            lock.unlock();
            try {
                request->started.set_value(spawn(*request->command));
            } catch (...) {
                request->started.set_exception(std::current_exception());
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<Request*> queue_;
};

}  // namespace

StartedWorker spawn_worker(const WorkerCommand& command) {
    // Never destroyed: its thread runs until the program ends, and the workers with it.
    static Spawner& spawner = *new Spawner;
    Request request;
    request.command = &command;
    return spawner.start(request);
}

}  // namespace attest::worker
