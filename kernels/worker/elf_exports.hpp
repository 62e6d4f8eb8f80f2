#pragma once
// The names a shared library exports, read from the file: for saying what a library has instead of
// attest_get_kernel.

#include <string>
#include <vector>

namespace attest::worker {

/// Defined global symbols of the dynamic table; empty where the file is not a 64-bit ELF library.
std::vector<std::string> exported_symbols(const std::string& path);

}  // namespace attest::worker
