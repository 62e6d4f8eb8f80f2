#include "kernels/worker/told.hpp"

#include "kernels/worker/autopsy.hpp"
#include "reference/problem/text.hpp"

namespace attest::worker {

CallResult told(protocol::Status status, const std::string& text, bool on_device) {
    CallResult result;
    switch (status) {
        case protocol::Status::done:
            return result;
        case protocol::Status::exception:
            return failed(Outcome::crash, Fault::Kind::exception,
                          "let an exception cross the border: " + printable(text, 300));
        case protocol::Status::lost:
            return failed(Outcome::crash, Fault::Kind::context_lost,
                          "lost its GPU context: " + printable(text, 300));
        case protocol::Status::memory:
            return failed(Outcome::memory, Fault::Kind::exception,
                          "ran out of memory: an allocation failed");
        case protocol::Status::unwatched:
            return failed(Outcome::crash, Fault::Kind::signal,
                          "put a handler of its own in the judge's place for SIGSEGV or SIGBUS, "
                          "in each call anew: what it reads outside its tensors would not be "
                          "seen");
        default:
            break;
    }
    result.outcome = Outcome::error;
    result.reason = text;
    if (status == protocol::Status::workspace)
        result.reason = "workspace() gives another size each time it is asked";
    if (status != protocol::Status::absent) return result;
    if (on_device) result.outcome = Outcome::refused;
    if (text.empty()) result.reason = "the kernel has no such operation";
    if (!on_device)
        result.reason = "it refused a call that its manifest and supports() take: " + result.reason;
    return result;
}

}  // namespace attest::worker
