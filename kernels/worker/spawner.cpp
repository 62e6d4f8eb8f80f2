#include "kernels/worker/spawner.hpp"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "kernels/worker/protocol.hpp"
#include "reference/problem/errors.hpp"

namespace attest::worker {
namespace {

struct Request {
    const std::vector<std::string>* command = nullptr;
    int socket_fd = -1, memory_fd = -1;
    Processors processors = Processors::all;
    std::promise<pid_t> started;
};

/// A process has the processors of the thread that starts it: this one, for as long as this lives.
class OnProcessors {
public:
    explicit OnProcessors(Processors which) {
        CPU_ZERO(&before_);
        narrowed_ = which == Processors::one &&
                    ::sched_getaffinity(0, sizeof before_, &before_) == 0;
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

pid_t spawn(const Request& request) {
    std::vector<char*> arguments;
    for (const std::string& part : *request.command) {
        arguments.push_back(const_cast<char*>(part.c_str()));  // posix_spawn does not write
    }
    arguments.push_back(nullptr);

    // The duplicates lie above every target, so that no dup2 overwrites what the next one needs.
    const int above = protocol::memory_fd + 1;
    const int socket_fd = ::fcntl(request.socket_fd, F_DUPFD_CLOEXEC, above);
    const int memory_fd = ::fcntl(request.memory_fd, F_DUPFD_CLOEXEC, above);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, protocol::socket_fd);
    posix_spawn_file_actions_adddup2(&actions, memory_fd, protocol::memory_fd);
    // Here, not in the worker: what is preloaded into it (compute-sanitizer) opens its own before
    // main() and is lost without them.
    posix_spawn_file_actions_addclosefrom_np(&actions, above);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    pid_t pid = -1;
    const OnProcessors on(request.processors);
    const int error =
        posix_spawn(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(socket_fd);
    ::close(memory_fd);
    if (error != 0) {
        throw InternalError("cannot start " + request.command->front() + ": " +
                            std::strerror(error));
    }
    return pid;
}

class Spawner {
public:
    Spawner() {
        std::thread([this] { work(); }).detach();
    }

    pid_t start(Request& request) {
        std::future<pid_t> started = request.started.get_future();
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
                request->started.set_value(spawn(*request));
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

pid_t spawn_worker(const std::vector<std::string>& command, int socket_fd, int memory_fd,
                   Processors processors) {
    // Never destroyed: its thread runs until the program ends, and the workers with it.
    static Spawner& spawner = *new Spawner;
    Request request;
    request.command = &command;
    request.socket_fd = socket_fd;
    request.memory_fd = memory_fd;
    request.processors = processors;
    return spawner.start(request);
}

}  // namespace attest::worker
