#pragma once
// What a kernel's process is made of: the files that it executes.

#include <map>
#include <string>

#include "kernels/interface/kernel_spec.hpp"
#include "properties/search/session_kernel.hpp"

namespace attest::ci {

/// Name and SHA-256 of each file that the process has mapped to be executed: its program, the
/// libraries. Of a Python kernel, its module's source too; of no process (0), that alone.
std::map<std::string, std::string> process_files(int process_id, const kernel::KernelSpec& kernel);

/// The same of a kernel that is loaded here, in a process of its own, and has answered a call: some
/// libraries are loaded by the first one. With what its manifest lists as its sources.
std::map<std::string, std::string> kernel_files(const kernel::KernelSpec& spec,
                                                const worker::SessionOptions& options);

}  // namespace attest::ci
