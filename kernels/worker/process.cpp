#include "kernels/worker/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "kernels/interface/worker_directory.hpp"
#include "kernels/worker/protocol_process.hpp"
#include "kernels/worker/queue_time.hpp"
#include "kernels/worker/session.hpp"
#include "kernels/worker/signs_of_life.hpp"
#include "kernels/worker/spawner.hpp"
#include "kernels/worker/wanted_frames.hpp"
#include "kernels/worker/worker_memory.hpp"
#include "reference/problem/errors.hpp"

namespace attest::worker {
namespace {

/// How long a wait lasts before the deadline, the memory and the process itself are looked at. Only
/// calls that take longer than this pay for the looking.
constexpr std::chrono::milliseconds slice{20};

/// How long a process has shown no sign of life. It is looked at seldom: what is looked for lasts
/// seconds.
class Silence {
public:
    explicit Silence(pid_t process) : signs_(process) {}

    /// Of which the process had a processor, or wanted none.
    std::chrono::nanoseconds lasts(WorkerProcess::Clock::time_point now,
                                   std::chrono::nanoseconds waited) {
        constexpr std::chrono::milliseconds look_every{100};
        if (now >= looked_ + look_every) {
            looked_ = now;
            if (signs_.seen()) {
                since_ = now;
                waited_ = waited;
            }
        }
        return now - since_ - (waited - waited_);
    }

private:
    SignsOfLife signs_;
    WorkerProcess::Clock::time_point since_ = WorkerProcess::Clock::now(), looked_ = since_;
    std::chrono::nanoseconds waited_{0};
};

/// Whether it dies, and gives back what it holds.
bool is_ending(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string line;
    std::getline(file, line);
    // proc(5): the flags are the ninth field, the name in brackets the second.
    std::istringstream rest(line.substr(line.rfind(')') + 1));
    std::string skipped;
    for (int field = 3; field < 9; ++field) rest >> skipped;
    constexpr unsigned long exiting = 0x4;  // PF_EXITING
    unsigned long flags = 0;
    return rest >> flags && (flags & exiting) != 0;
}

}  // namespace

std::string signal_name(int signal) {
    const char* name = ::sigabbrev_np(signal);
    return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

WorkerProcess::WorkerProcess(const std::vector<std::string>& arguments, int memory_fd,
                             const SessionOptions& options)
    : memory_fd_(memory_fd), farewell_(options.farewell), buffer_(protocol::frame_bytes_max) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw InternalError(fmt::format("no socket for a worker: {}", std::strerror(errno)));
    }
    std::array<int, 2> output{};
    if (::pipe2(output.data(), O_CLOEXEC) != 0) {
        ::close(ends[0]);
        ::close(ends[1]);
        throw InternalError(fmt::format("no pipe for a worker: {}", std::strerror(errno)));
    }
    std::array<int, 2> end{};
    if (::pipe2(end.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
        for (const int one : {ends[0], ends[1], output[0], output[1]}) ::close(one);
        throw InternalError(fmt::format("no pipe for a worker: {}", std::strerror(errno)));
    }
    ::fcntl(output[0], F_SETFL, O_NONBLOCK);
    socket_ = ends[0];
    output_ = output[0];
    end_ = end[0];
    kills_before_ = kills_for_memory();
    const ConfinementOptions& hold = options.confinement;
    WorkerCommand command;
    command.arguments = {kernel::worker_program(), "free"};
    if (hold.confined)
        command.arguments = {kernel::worker_program(), "confined", fmt::format("{}", ::getuid()),
                             fmt::format("{}", ::getgid()), hold.results};
    command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
    command.environment = kernel_environment(hold);
    command.socket_fd = ends[1];
    command.memory_fd = memory_fd;
    command.output_fd = output[1];
    if (hold.confined) command.end_fd = end[1];
    tells_barriers_ = hold.confined;
    command.processors = options.processors;
    command.namespaces = hold.confined;
    // What is built in finds its plug-ins by the program's own place.
    command.nameless = hold.confined && !arguments.empty() && arguments.front() == "library";
    try {
        const StartedWorker started = spawn_worker(command);
        pid_ = started.pid;
        in_namespace_ = started.in_namespace;
    } catch (...) {
        for (const int one : {ends[0], ends[1], output[0], output[1], end[0], end[1]}) ::close(one);
        throw;
    }
    ::close(ends[1]);
    ::close(output[1]);
    ::close(end[1]);
}

WorkerProcess::~WorkerProcess() {
    if (farewell_.count() > 0) ::shutdown(socket_, SHUT_WR);  // which tells it to end
    end(farewell_);
    ::close(socket_);
    ::close(output_);
    ::close(end_);
}

bool WorkerProcess::send(const void* frame, std::size_t bytes) noexcept {
    ssize_t sent = 0;
    do {
        sent = ::send(socket_, frame, bytes, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes);
}

WorkerProcess::Received WorkerProcess::receive(protocol::FrameKind kind, std::uint32_t sequence,
                                               const Patience& patience) {
    std::optional<QueueTime> queue;  // of calls that take long alone
    std::optional<Silence> silence;
    for (;;) {
        wait();
        take_output();
        const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
        // The other end died with frames unread. That is told once, before what it had sent itself.
        if (got < 0 && errno == ECONNRESET) continue;
        // A message of no bytes, which a kernel may send, reads like the end.
        if (got > 0 || (got == 0 && !hung_up())) {
            const auto frame =
                std::span<const std::byte>(buffer_).first(static_cast<std::size_t>(got));
            take_barriers(frame);
            if (is_wanted(frame, kind, sequence)) return {Event::frame, frame};
            if (is_unasked(frame, kind)) return {Event::unasked, {}};
        } else {
            const bool waited = got < 0 && (errno == EAGAIN || errno == EINTR);
            // A child of the kernel's may hold the socket open after the worker has died.
            if (!waited || has_ended()) return {Event::ended, {}};
            if (patience.memory_bytes != 0 &&
                private_memory(patience.memory_bytes) > patience.memory_bytes)
                return {Event::memory, {}};
            if (!queue) queue.emplace(id());
            if (!silence && patience.silence.count() > 0) silence.emplace(id());
        }
        const Clock::time_point now = Clock::now();
        if (now >= patience.deadline && (!queue || now >= patience.deadline + queue->waited()))
            return {Event::timeout, {}};
        if (silence && silence->lasts(now, queue->waited()) >= patience.silence)
            return {Event::silence, {}};
    }
}

void WorkerProcess::wait() const {
    std::array<pollfd, 2> ends{pollfd{socket_, POLLIN, 0}, pollfd{output_, POLLIN, 0}};
    // Whoever closed its end of the pipe prints no more, and is not waited for.
    const nfds_t count = output_closed_ ? 1 : 2;
    ::poll(ends.data(), count, static_cast<int>(slice.count()));
}

/// The pipe is emptied whatever comes, or a kernel that prints much would wait for its reader.
void WorkerProcess::take_output() {
    constexpr std::size_t kept = 8192, rounds_max = 64;
    std::array<char, 65536> bytes;
    for (std::size_t round = 0; round < rounds_max; ++round) {
        const ssize_t got = ::read(output_, bytes.data(), bytes.size());
        output_closed_ = got == 0;
        if (got <= 0) return;
        printed_.append(bytes.data(), static_cast<std::size_t>(got));
        if (printed_.size() > kept) printed_.erase(0, printed_.size() - kept);
    }
}

std::string WorkerProcess::take_printed() {
    take_output();
    return std::exchange(printed_, {});
}

void WorkerProcess::take_barriers(std::span<const std::byte> frame) {
    if (!std::exchange(tells_barriers_, false)) return;
    protocol::ConfinedFrame confined;
    if (frame.size() != sizeof confined) return;
    std::memcpy(&confined, frame.data(), sizeof confined);
    if (confined.header.kind == protocol::FrameKind::confined)
        barriers_ = Barriers(confined.barriers);
}

bool WorkerProcess::hung_up() const {
    pollfd socket{socket_, POLLRDHUP, 0};
    return ::poll(&socket, 1, 0) > 0 && (socket.revents & (POLLRDHUP | POLLHUP)) != 0;
}

pid_t WorkerProcess::id() const {
    if (!in_namespace_) return pid_;
    if (kernel_ == 0) {
        const std::string path = fmt::format("/proc/{0}/task/{0}/children", pid_);
        std::ifstream(path) >> kernel_;
    }
    return kernel_;
}

bool WorkerProcess::has_ended() {
    if (reaped_) return true;
    const pid_t ended = ::waitpid(pid_, &status_, WNOHANG);
    // Where the program ignores SIGCHLD, nobody is left to wait for.
    reaped_ = ended == pid_ || (ended < 0 && errno == ECHILD);
    return reaped_;
}

ExitStatus WorkerProcess::end(std::chrono::milliseconds patience) {
    // Most deaths are milliseconds away; waiting for them beats killing what was about to speak.
    // Who has no processor dies later, and who holds gigabytes takes a second to give them back.
    constexpr std::chrono::seconds longest{10};
    const Clock::time_point begin = Clock::now(), until = begin + patience;
    const QueueTime queue(id());
    const auto dies = [&] { return is_ending(pid_) || is_ending(id()); };
    const auto waits = [&](Clock::time_point now) {
        if (patience.count() == 0 || now >= begin + longest) return false;
        return now < until || now < until + queue.waited() || dies();
    };
    while (!has_ended() && waits(Clock::now())) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    const bool killed = !reaped_;
    if (killed) {
        ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
        }
        reaped_ = true;
    }
    ::kill(-pid_, SIGKILL);  // what the kernel started and left behind
    ExitStatus status;
    protocol::EndReport report;
    // Only the process that looks after it can write there, and says what waitpid() told it.
    if (::read(end_, &report, sizeof report) == sizeof report) {
        status.signal = report.signal;
        status.code = report.code;
    } else {
        status.by_host = killed;
        if (WIFSIGNALED(status_)) status.signal = WTERMSIG(status_);
        if (WIFEXITED(status_)) status.code = WEXITSTATUS(status_);
    }
    const auto kills = kills_for_memory();
    if (kills && kills_before_) status.without_memory = *kills > *kills_before_;
    return status;
}

std::uint64_t WorkerProcess::private_memory(std::uint64_t enough) const {
    return resident_memory(id(), in_namespace_ ? pid_ : id(), memory_fd_, enough);
}

}  // namespace attest::worker
