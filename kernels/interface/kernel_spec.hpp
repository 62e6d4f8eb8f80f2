#pragma once
// How a person names a kernel on the command line, and what that means.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attest::kernel {

enum class KernelInterface : std::uint8_t { builtin, c_abi, python, executable };

/// `cpu_flash` or `mutant:M001` (built in), `./libmine.so` or `./libmine.so#1` (C ABI, index),
/// `./mine.json` (a file that names a library, index or command: see kernels/interface/README.md),
/// `python:package.module:function`, `exec:./program`.
struct KernelSpec {
    KernelInterface interface = KernelInterface::builtin;
    std::string text;  ///< as typed
    std::string id;    ///< built-in id, or the name reports use
    std::string path;  ///< library or program
    std::size_t index = 0;
    std::vector<std::string> arguments;  ///< of a program
    std::string module, function, interpreter = "python3";

    const std::string& name() const noexcept { return id.empty() ? text : id; }
};

/// Throws BadInput (does not exist, not a library, unknown built-in id with the nearest one).
KernelSpec parse_kernel_spec(std::string_view text,
                             std::string_view python_interpreter = "python3");

}  // namespace attest::kernel
