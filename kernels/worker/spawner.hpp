#pragma once
// Where worker processes are started from. A process that asked to die with its parent dies with
// the parent's *thread* that started it, so workers are started by one thread that lasts as long as
// this program. The host's memory is lent to the child until it becomes the program, not copied:
// forking a host with a gigabyte resident takes 20 ms.

#include <sys/types.h>

#include <string>
#include <vector>

#include "kernels/worker/processors.hpp"

namespace attest::worker {

struct WorkerCommand {
    std::vector<std::string> arguments;  ///< the program first
    std::vector<std::string> environment;
    int socket_fd = -1, memory_fd = -1, output_fd = -1;
    int end_fd = -1;  ///< protocol::end_fd; -1: none
    Processors processors = Processors::all;
    bool namespaces = false;  ///< of processes and mounts, where the machine gives them
    /// Run a copy of the program in memory, whose path and name tell nobody what it is.
    bool nameless = false;
};

struct StartedWorker {
    pid_t pid = -1;
    bool in_namespace = false;  ///< pid is then the namespace's first process
};

/// Starts a program in a process group of its own, with default signals, nothing to read, the
/// descriptors in the places the protocol names, and no other open. Throws InternalError.
StartedWorker spawn_worker(const WorkerCommand& command);

}  // namespace attest::worker
