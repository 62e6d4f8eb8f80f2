#pragma once
// Where the worker program and the Python worker's package are found: beside the running program,
// in the build tree, or installed.

#include <string>

namespace attest::kernel {

/// Searched in this order: the environment's ATTEST_WORKER_DIR, beside the running program,
/// kernels/worker in one of its parent folders (the build tree), ../lib/attest and
/// ../libexec/attest. Throws InternalError with the places where none has it.
std::string worker_program();
std::string worker_python_directory();

}  // namespace attest::kernel
