#pragma once
// A Session is one worker process that holds one kernel, seen from the host. Every call lays the
// tensors into guarded shared memory, sends one message, waits with a time limit, and says exactly
// what happened: outputs, a refusal, an error text, or how the process died and on which tensor. A
// dead worker is replaced before the next call.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/interface/kernel_spec.hpp"
#include "kernels/interface/manifest.hpp"
#include "kernels/interface/worker_directory.hpp"
#include "kernels/worker/call_result.hpp"
#include "kernels/worker/confinement.hpp"
#include "kernels/worker/processors.hpp"
#include "reference/problem/problem.hpp"

namespace attest::worker {

struct Asked;

class Session;

struct SessionOptions {
    std::chrono::milliseconds timeout{10'000};  ///< one call; six times as long where simulated
    /// A call that showed no sign of life for so long is hung, whatever is left of its timeout; 0:
    /// it has all of that.
    std::chrono::milliseconds silence{0};
    /// Resident in the worker beyond what it held when its kernel was loaded; more, or a workspace
    /// of more, is Outcome::memory. 0: no limit.
    std::uint64_t memory_bytes = 4ull << 30;
    std::uint64_t poison_seed = 0;  ///< varies slack and poison patterns between campaigns
    /// How long a worker that is no longer needed may take to end by itself. Most are killed at
    /// once: what a kernel does at its end is nobody's business, and takes time.
    std::chrono::milliseconds farewell{0};
    Processors processors = Processors::all;
    ConfinementOptions confinement{};
    /// Told of a process before its owner ends it, by the owner's thread; throws nothing.
    std::function<void(Session&)> before_end{};
};

class Session {
public:
    /// Starts the worker and loads the kernel. Throws BadInput where the kernel cannot be loaded
    /// (not a plug-in, wrong ABI, bad manifest, missing module), LoadCrash where its process died
    /// while loading.
    Session(const kernel::KernelSpec& spec, const SessionOptions& options);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    const kernel::Manifest& manifest() const noexcept;

    /// The kernel's own answer; the reason is empty where it says yes. Throws KernelDied.
    bool supports(const Problem& problem, std::string* reason);

    /// One forward call. Inputs are those of make_inputs; k and v of a paged cache may also be
    /// given as sequences [batch, heads_kv, len_kv, dim], and are then laid into pages here by
    /// inputs[Role::block_table]. A problem the kernel does not support is refused without a call.
    /// A worker that is killed from outside is replaced and the call made again. Throws KernelGone.
    CallResult forward(const Problem& problem, const TensorSet& inputs);

    /// One forward call, while a second thread makes the same call on tensors of its own, in which
    /// q, k and v are zero; refused where the worker has but one thread.
    CallResult forward_beside(const Problem& problem, const TensorSet& inputs);

    /// One backward call. Inputs are forward's, its o and lse (where the kernel returns one), and
    /// d_o; `wanted` are the gradients that are given a place, those of them the problem has.
    CallResult backward(const Problem& problem, const TensorSet& inputs,
                        const std::vector<Role>& wanted);

    /// The next call is number `first`. Even calls lay every tensor flush against the guard
    /// after it, odd calls against the guard before it, each with its own poison: what a case shows
    /// then depends on the case alone, not on what ran before.
    void begin_case(std::uint64_t first = 0) noexcept;

    void set_timeout(std::chrono::milliseconds timeout,
                     std::chrono::milliseconds silence = std::chrono::milliseconds(0)) noexcept;
    void restart();  ///< a fresh process, begin_case() included. Throws KernelGone.
    void use_processors(Processors which) noexcept;  ///< of the processes started from now on
    int process_id() const;
    /// What its process is made of by now beyond what it has mapped: of a Python kernel what it has
    /// imported. Asked last: a process that does not answer is ended.
    std::map<std::string, std::string> sources_now();
    Barriers barriers() const noexcept;  ///< that hold the kernel in

private:
    struct State;
    CallResult call(const Problem& problem, const TensorSet& inputs, const Asked& asked);

    std::unique_ptr<State> state_;
};

/// The process died before a call was under way: inside supports() or workspace().
class KernelDied : public std::runtime_error {
public:
    KernelDied(const std::string& line, CallResult its_result)
        : std::runtime_error(line), result(std::move(its_result)) {}
    CallResult result;  ///< as of a call: how it ended
};

/// The kernel was loaded before and cannot be loaded again. details as BadInput's.
class KernelGone : public std::runtime_error {
public:
    KernelGone(const std::string& line, std::vector<std::string> details)
        : std::runtime_error(line), details_(std::move(details)) {}
    const std::vector<std::string>& details() const noexcept { return details_; }

private:
    std::vector<std::string> details_;
};

/// The worker died while loading the kernel: exit code 3. what() and details as BadInput's.
class LoadCrash : public std::runtime_error {
public:
    explicit LoadCrash(const std::string& line, std::vector<std::string> details = {})
        : std::runtime_error(line), details_(std::move(details)) {}
    const std::vector<std::string>& details() const noexcept { return details_; }

private:
    std::vector<std::string> details_;
};

}  // namespace attest::worker
