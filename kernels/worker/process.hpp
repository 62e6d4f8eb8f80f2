#pragma once
// A worker process as the host holds it: its socket, its end, and why it ended.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/worker/confinement.hpp"
#include "kernels/worker/protocol.hpp"

namespace attest::worker {

struct SessionOptions;

/// How a process ended. signal is 0 where it exited by itself.
struct ExitStatus {
    int signal = 0;
    int code = 0;
    bool by_host = false;  ///< it had not ended: this program killed it
    /// Meanwhile the system has killed a process of ours because it had no memory left, as
    /// kills_for_memory() counts; none where it does not say.
    std::optional<bool> without_memory;
};

std::string signal_name(int signal);  ///< "SIGSEGV"; "signal 40" where it has no name

class WorkerProcess {
public:
    using Clock = std::chrono::steady_clock;
    /// unasked: an answer came that nobody had asked for.
    enum class Event { frame, ended, timeout, silence, memory, unasked };
    struct Received {
        Event event = Event::ended;
        std::span<const std::byte> frame;  ///< valid until the next receive()
    };

    /// When to give up.
    struct Patience {
        Clock::time_point deadline;
        std::uint64_t memory_bytes = 0;        ///< private and resident; 0: no limit
        std::chrono::milliseconds silence{0};  ///< without a sign of life; 0: no limit
    };

    /// Starts `attest_worker HOLD arguments...` with the memory file as its descriptor 4. Throws
    /// InternalError where no process can be started.
    WorkerProcess(const std::vector<std::string>& arguments, int memory_fd,
                  const SessionOptions& options);
    ~WorkerProcess();  ///< kills it, where it has not ended by itself, and waits
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;

    pid_t id() const;  ///< of the kernel's process; 0 where it has ended, or is not known yet

    bool runs() { return !has_ended(); }

    /// What holds it in. Known once the kernel is loaded.
    Barriers barriers() const noexcept { return barriers_; }

    /// False where the other end is closed.
    bool send(const void* frame, std::size_t bytes) noexcept;

    /// The next frame of this kind and sequence, or of the kinds that may come at any time
    /// (load_error, fault). Frames that are malformed are dropped: what comes from a kernel's
    /// process is not to be trusted. But a worker answers nothing but what it is asked: another
    /// answer is the kernel's own, and tells on it. The time in which the process was ready to run
    /// and had no processor does not count.
    Received receive(protocol::FrameKind kind, std::uint32_t sequence, const Patience& patience);

    /// Kills the process and everything in its group, and says how it had ended. Waits `patience`
    /// first for it to end by itself.
    ExitStatus end(std::chrono::milliseconds patience);

    /// What it printed since this was last asked: the last of it.
    std::string take_printed();

    /// Of all its processes, as resident_memory() counts it.
    std::uint64_t private_memory(std::uint64_t enough = 0) const;

private:
    bool has_ended();
    /// The first frame of all, which attest_worker sends: of the process, and for nobody else.
    void take_barriers(std::span<const std::byte> frame);
    bool hung_up() const;  ///< the other end is closed, or says nothing any more
    void take_output();
    void wait() const;  ///< for a frame or for output, one slice long

    pid_t pid_ = -1;             ///< that was started, and is waited for
    bool in_namespace_ = false;  ///< pid_ looks after the kernel's process, its only child
    mutable pid_t kernel_ = 0;
    Barriers barriers_;
    bool tells_barriers_ = false;  ///< it has still to say what holds it in
    int socket_ = -1, output_ = -1;
    int end_ = -1;  ///< on which the process that looks after it says how it ended
    std::optional<std::uint64_t> kills_before_;  ///< for want of memory
    bool output_closed_ = false;
    std::string printed_;
    int memory_fd_ = -1;  ///< of the tensors
    std::chrono::milliseconds farewell_;
    bool reaped_ = false;
    int status_ = 0;
    std::vector<std::byte> buffer_;
};

}  // namespace attest::worker
