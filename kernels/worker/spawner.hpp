#pragma once
// Where worker processes are started from. A process that asked to die with its parent dies with
// the parent's *thread* that started it, so workers are started by one thread that lasts as long as
// this program. posix_spawn, not fork: forking a host with a gigabyte resident takes 20 ms.

#include <sys/types.h>

#include <string>
#include <vector>

#include "kernels/worker/processors.hpp"

namespace attest::worker {

/// Starts a program in a process group of its own, with this program's environment, default
/// signals, nothing to read, the two descriptors in the places the protocol names, and no other
/// open. Throws InternalError.
pid_t spawn_worker(const std::vector<std::string>& command, int socket_fd, int memory_fd,
                   Processors processors);

}  // namespace attest::worker
