#include "kernels/worker/call_result.hpp"

#include <array>

namespace attest::worker {

std::string_view name(Outcome outcome) noexcept {
    constexpr std::array<std::string_view, 8> names = {"ok",   "refused", "error", "crash",
                                                       "hang", "memory",  "slow",  "no_memory"};
    return names[static_cast<std::size_t>(outcome)];
}

std::string_view name(Fault::Kind kind) noexcept {
    constexpr std::array<std::string_view, 10> names = {
        "read_outside", "write_outside",  "write_input", "signal",       "abort_called",
        "exit_called",  "stack_overflow", "exception",   "context_lost", "outside_all"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name(Fault::Access access) noexcept {
    constexpr std::array<std::string_view, 3> names = {"none", "read", "write"};
    return names[static_cast<std::size_t>(access)];
}

bool killed_from_outside(const CallResult& result) noexcept {
    return result.fault && result.fault->signal == "SIGKILL";
}

}  // namespace attest::worker
