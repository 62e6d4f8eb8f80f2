#pragma once
// What a worker says of a call. It is one process with the kernel, which may answer in its place:
// nothing said here counts in the kernel's favour. Outputs and what must not be written are looked
// at by the host; and who may be asked a question may not say afterwards that there is none.

#include <string>

#include "kernels/worker/call_result.hpp"
#include "kernels/worker/protocol.hpp"

namespace attest::worker {

/// A call by its reply alone. on_device: the kernel declares CUDA memory, which may be full; it and
/// nobody else may refuse a call after supports() said yes.
CallResult told(protocol::Status status, const std::string& text, bool on_device);

}  // namespace attest::worker
