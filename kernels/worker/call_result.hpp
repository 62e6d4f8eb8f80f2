#pragma once
// What became of one call: outputs, a refusal, an error text, or how the process died and on which
// tensor.

#include <cstdint>
#include <optional>
#include <string>

#include "reference/problem/tensor.hpp"

namespace attest::worker {

enum class Outcome : std::uint8_t {
    ok,
    refused,
    error,
    crash,
    hang,
    memory,
    // With these nothing is said against the kernel:
    slow,      ///< it did not return, but by its own speed need not have
    no_memory  ///< the system had none left and killed it, which held no more than it may
};
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
    /// refusal or error text, from the kernel; hostile: escape before printing
    std::string reason;
    /// crash, hang, memory, and ok calls that wrote outside or changed an input
    std::optional<Fault> fault;
    TensorSet outputs;  ///< o, lse (and gradients) where outcome is ok, dense logical
    /// some output element still holds the poison laid there before the call
    bool outputs_unwritten = false;
    Role unwritten_role = Role::o;
    std::int64_t unwritten_index = 0;  ///< flat index of the first such element
    /// some output element is a NaN made of what the workspace held before the call
    bool workspace_read = false;
    double seconds = 0;
    /// The last lines of what the kernel printed in the call, made printable
    std::string printed;
};

/// Nobody here sent the SIGKILL it died of: it was the system out of memory, a person, or itself.
bool killed_from_outside(const CallResult& result) noexcept;

}  // namespace attest::worker
