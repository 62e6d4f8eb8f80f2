#pragma once
// The worker's loop: a frame comes, the kernel is asked, a frame goes.

#include "kernels/worker/load.hpp"

namespace attest::worker {

/// Answers until the host closes the socket. Throws LoadFailure where the kernel wants its tensors
/// on a device that is not there.
void serve(const LoadedKernel& kernel);

}  // namespace attest::worker
