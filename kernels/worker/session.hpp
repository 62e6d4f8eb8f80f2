#pragma once
// A Session is one worker process that holds one kernel, seen from the host. Every call lays the
// tensors into guarded shared memory, sends one message, waits with a time limit, and says exactly
// what happened: outputs, a refusal, an error text, or how the process died and on which tensor. A
// dead worker is replaced before the next call.

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/interface/kernel_spec.hpp"
#include "kernels/interface/manifest.hpp"
#include "kernels/interface/worker_directory.hpp"
#include "reference/problem/problem.hpp"

namespace attest::worker {

enum class Outcome : std::uint8_t { ok, refused, error, crash, hang, memory };
std::string_view name(Outcome outcome) noexcept;

/// Where a kernel touched what it must not. side says on which side of the tensor; offset_bytes
/// counts from the tensor's first byte (negative before it, >= its size after it).
struct Fault {
    enum class Kind : std::uint8_t {
        read_outside,
        write_outside,
        write_input,
        signal,
        abort_called,
        exit_called,
        stack_overflow,
        exception,
        context_lost,
        outside_all
    };
    enum class Access : std::uint8_t { none, read, write };
    Kind kind = Kind::signal;
    /// Of an access to where the kernel had nothing to seek. Where such a one ends is chance: in a
    /// tensor's guard, in another tensor, or in none.
    Access stray = Access::none;
    std::optional<Role> tensor;  ///< none: the workspace, or an address in no tensor
    bool workspace = false;
    std::int64_t offset_bytes = 0;
    bool before = false;  ///< side
    std::string signal;   ///< "SIGSEGV", "SIGABRT", ...; empty if none
    int exit_code = 0;
    std::string sentence;  ///< "read 64 bytes past the end of k", for people
};

std::string_view name(Fault::Kind kind) noexcept;
std::string_view name(Fault::Access access) noexcept;

struct CallResult {
    Outcome outcome = Outcome::ok;
    std::string
        reason;  ///< refusal or error text, from the kernel; hostile: escape before printing
    std::optional<Fault>
        fault;  ///< crash, hang, memory, and ok calls that wrote outside or changed an input
    TensorSet outputs;  ///< o, lse (and gradients) where outcome is ok, dense logical
    bool outputs_unwritten =
        false;  ///< some output element still holds the poison laid there before the call
    Role unwritten_role = Role::o;
    std::int64_t unwritten_index = 0;  ///< flat index of the first such element
    double seconds = 0;
};

struct SessionOptions {
    std::chrono::milliseconds timeout{10'000};  ///< one call; six times as long where simulated
    std::uint64_t memory_bytes = 4ull << 30;    ///< of the worker; more is Outcome::memory
    std::uint64_t poison_seed = 0;  ///< varies slack and poison patterns between campaigns
    /// How long a worker that is no longer needed may take to end by itself. Most are killed at
    /// once: what a kernel does at its end is nobody's business, and takes time.
    std::chrono::milliseconds farewell{0};
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

    /// The kernel's own answer; the reason is empty where it says yes. A crash inside supports() is
    /// a BadInput.
    bool supports(const Problem& problem, std::string* reason);

    /// One forward call. Inputs are those of make_inputs; k and v of a paged cache may also be
    /// given as sequences [batch, heads_kv, len_kv, dim], and are then laid into pages here by
    /// inputs[Role::block_table]. A problem the kernel does not support is refused without a call.
    CallResult forward(const Problem& problem, const TensorSet& inputs);

    /// The next forward() is number `first`. Even calls lay every tensor flush against the guard
    /// after it, odd calls against the guard before it, each with its own poison: what a case shows
    /// then depends on the case alone, not on what ran before.
    void begin_case(std::uint64_t first = 0) noexcept;

    void set_timeout(std::chrono::milliseconds timeout) noexcept;
    void restart();  ///< a fresh process, begin_case() included: for confirming a shrunk case
    int process_id() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
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
