#pragma once
// A kernel in a process of its own, loaded and answering: the process, the memory shared with it,
// and the question-and-answer part of the protocol. It is made anew for every restart.

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "kernels/worker/arena.hpp"
#include "kernels/worker/autopsy.hpp"
#include "kernels/worker/process.hpp"
#include "kernels/worker/session.hpp"

namespace attest::worker {

/// What supports() is asked about. A worker that has nothing but a manifest to answer by is told
/// the features' names.
struct SupportQuestion {
    attest_problem problem;
    FeatureSet features;
};

class WorkerLink {
public:
    struct SupportAnswer {
        bool yes = false;
        std::string reason;
        std::uint64_t workspace_bytes = 0;
    };
    struct CallAnswer {
        protocol::ReplyFrame reply;
        std::string text;
    };

    /// Starts the worker and loads the kernel: BadInput, LoadCrash or InternalError. A crash while
    /// loading is tried three times.
    WorkerLink(const kernel::KernelSpec& spec, const SessionOptions& options, const Arena& arena);

    const std::string& manifest_text() const noexcept { return manifest_text_; }
    /// A Python kernel's sources with what was imported up to now; none where it no longer answers,
    /// which ends its process.
    std::map<std::string, std::string> sources_now(SessionOptions options);
    pid_t process_id() const { return process_->id(); }
    /// Since the last question.
    std::string take_printed() { return process_->take_printed(); }
    Barriers barriers() const noexcept { return process_->barriers(); }

    std::variant<SupportAnswer, WorkerDeath> ask_support(const SupportQuestion& question,
                                                         const SessionOptions& options);
    /// The frame's fixed part is filled by the caller, header excepted.
    std::variant<CallAnswer, WorkerDeath> call(protocol::CallFrame& frame,
                                               const SessionOptions& options);

private:
    /// Starts one process; false where it died before it said anything.
    bool load_once(const kernel::KernelSpec& spec, const std::string& interpreter,
                   const Arena& arena, const SessionOptions& options, WorkerDeath& death);
    /// Sends a whole frame, whose header lacks its size and number, and waits for the answer.
    std::variant<std::span<const std::byte>, WorkerDeath> exchange(std::span<std::byte> question,
                                                                   protocol::FrameKind answer,
                                                                   const SessionOptions& options);
    WorkerDeath read_death(WorkerProcess::Received received);

    std::unique_ptr<WorkerProcess> process_;
    std::string manifest_text_;
    std::uint32_t sequence_ = 0;
    std::uint64_t memory_at_start_ = 0;
};

}  // namespace attest::worker
