// How a process ended that said nothing: from its wait status alone.

#include <fmt/format.h>

#include <csignal>

#include "kernels/worker/autopsy.hpp"

namespace attest::worker {
namespace {

constexpr std::string_view closed_the_ends =
    "closed the descriptors of its process that the judge speaks through";

std::string killed_by(const ExitStatus& status) {
    if (!status.without_memory)
        return "was killed by SIGKILL, which attest did not send: by itself, from outside, or "
               "because the machine ran out of memory";
    return *status.without_memory
               ? "was killed by the system, which ran out of memory"
               : "was killed by SIGKILL, which attest did not send: by itself, by a limit of its "
                 "own, or from outside; the machine had memory left";
}

}  // namespace

Finding without_last_words(const WorkerDeath& death) {
    const ExitStatus& status = death.status;
    Finding finding;
    Fault& fault = finding.fault;
    if (status.by_host) {
        fault.kind = Fault::Kind::exit_called;
        fault.sentence = fmt::format("{}, or spoke there in its worker's name", closed_the_ends);
    } else if (status.signal == 0) {
        fault.kind = Fault::Kind::exit_called;
        fault.exit_code = status.code;
        fault.sentence = fmt::format("ended its process: exit({})", status.code);
        if (status.code == protocol::closed_exit)
            fault.sentence = fmt::format("{}, or {}", closed_the_ends, fault.sentence);
    } else {
        fault.signal = signal_name(status.signal);
        fault.kind = status.signal == SIGABRT ? Fault::Kind::abort_called : Fault::Kind::signal;
        fault.sentence = fmt::format("died of {}", fault.signal);
    }
    if (death.between_calls) fault.sentence += " between calls";
    if (fault.signal != "SIGKILL") return finding;
    // Of what it held while the host looked, more than it may have ends it before the system does.
    if (status.without_memory.value_or(false)) finding.outcome = Outcome::no_memory;
    fault.sentence = killed_by(status);
    return finding;
}

std::string describe_end(const WorkerDeath& death) {
    if (death.last_words) {
        return "died of " + signal_name(static_cast<int>(death.last_words->signal));
    }
    if (death.status.without_memory.value_or(false) && death.status.signal == SIGKILL)
        return killed_by(death.status);
    if (death.status.signal != 0) return "died of " + signal_name(death.status.signal);
    return fmt::format("ended by itself with exit code {}", death.status.code);
}

}  // namespace attest::worker
