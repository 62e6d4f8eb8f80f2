#pragma once
// What keeps a kernel inside its process, so that no kernel can stop the host, rewrite its verdict
// or outlive it. Each barrier is set up where the machine allows it; the worker tells the host
// which, before anything of the kernel's is loaded.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attest::worker {

enum class Barrier : std::uint8_t {
    processes,     ///< a process namespace: it sees and signals its own alone, and none outlives it
    proc,          ///< a /proc of that namespace: it cannot read what runs beside it
    results,       ///< the folder of the results cannot be written
    rights,        ///< no capability and no way to get one, also where attest runs as root
    system_calls,  ///< seccomp: no ptrace, no socket, no other process's memory or limits
    files          ///< Landlock: writes only below the folders for temporary files and caches
};
inline constexpr std::array<std::string_view, 6> barrier_names = {
    "processes", "proc", "results", "rights", "system_calls", "files"};

class Barriers {
public:
    constexpr Barriers() = default;
    explicit constexpr Barriers(std::uint32_t bits) noexcept : bits_(bits) {}
    constexpr void add(Barrier b) noexcept { bits_ |= bit(b); }
    constexpr bool has(Barrier b) const noexcept { return (bits_ & bit(b)) != 0; }
    constexpr std::uint32_t bits() const noexcept { return bits_; }

private:
    static constexpr std::uint32_t bit(Barrier b) noexcept {
        return std::uint32_t{1} << static_cast<int>(b);
    }
    std::uint32_t bits_ = 0;
};

/// Of the processes of a session.
struct ConfinementOptions {
    bool confined = true;
    std::string results;                 ///< the folder that must not be written; empty: none
    std::vector<std::string> variables;  ///< of the environment, given beside those that all get
};

/// In the worker, before the kernel is loaded. `results` as above. Returns in the process that is
/// to become the kernel's: where this one is the first of a process namespace, that is a child, and
/// this one stays, tells the host how the child ended (protocol::end_fd), and ends with it, and
/// with all it started.
void confine(const std::string& results, uid_t user, gid_t group);

/// In the host: what of this program's environment a kernel is given, as NAME=VALUE: paths,
/// language, the variables of the libraries that kernels are made with, and those named in the
/// options; nothing whose name speaks of a secret, unless it is named. Not confined: all of it.
std::vector<std::string> kernel_environment(const ConfinementOptions& options);

/// What of this program's environment a kernel is not given and a text of its own names: a
/// sentence each, with the option that helps.
std::vector<std::string> withheld_variables(std::string_view text,
                                            const ConfinementOptions& options);

}  // namespace attest::worker
