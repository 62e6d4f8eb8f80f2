#pragma once
// From what a dead worker left behind (its last frame, its wait status) and what it wrote where it
// should not have, to a Fault that names the tensor and says it in a sentence.

#include <optional>
#include <span>
#include <string>

#include "kernels/worker/arena.hpp"
#include "kernels/worker/process.hpp"
#include "kernels/worker/session.hpp"

namespace attest::worker {

struct WorkerDeath {
    std::optional<protocol::FaultFrame> last_words;
    std::string location;  ///< "libmine.so+0x1a40 (flash_row)", from the worker
    ExitStatus status;
    bool between_calls = false;   ///< it was dead before it was asked
    std::string printed;          ///< since the question
    bool killed_by_host = false;  ///< timeout or memory: then `event` says which
    WorkerProcess::Event event = WorkerProcess::Event::ended;
};

struct Finding {
    Outcome outcome = Outcome::crash;
    Fault fault;
};

/// memory_bytes and timeout are the session's, for the sentence.
Finding examine(const WorkerDeath& death, std::span<const TensorSlot> slots,
                const SessionOptions& options);

/// The same of a process that sent no last words.
Finding without_last_words(const WorkerDeath& death);

/// A call that failed before there was an answer to look at.
CallResult failed(Outcome outcome, Fault::Kind kind, const std::string& sentence);

/// The end of a call that wants a workspace of more than may be given; empty where it may have it.
std::optional<CallResult> refuse_workspace(std::uint64_t bytes, const SessionOptions& options);

/// A call that returned, but not without a trace.
Fault describe_breach(const Breach& breach, std::span<const TensorSlot> slots);

/// "died of SIGSEGV", "called exit(3)": how a process ended that was not examined further.
std::string describe_end(const WorkerDeath& death);

}  // namespace attest::worker
