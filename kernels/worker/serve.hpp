#pragma once
// The worker's loop: a frame comes, the kernel is asked, a frame goes.

#include "kernels/worker/load.hpp"

namespace attest::worker {

/// Answers until the host closes the socket.
void serve(const LoadedKernel& kernel);

}  // namespace attest::worker
