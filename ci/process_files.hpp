#pragma once
// What a kernel's process is made of: the files that it executes.

#include <map>
#include <string>

#include "kernels/interface/kernel_spec.hpp"

namespace attest::ci {

/// Name and SHA-256 of each file that the process has mapped to be executed: its program, the
/// libraries. Of a Python kernel, its module's source too; of no process (0), that alone.
std::map<std::string, std::string> process_files(int process_id, const kernel::KernelSpec& kernel);

}  // namespace attest::ci
