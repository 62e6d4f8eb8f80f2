#pragma once
// The kernels that ship with attest. They live inside the worker program, or in a plug-in beside
// it, and are reached through the same C ABI as anybody else's; the host knows only their names.

#include <span>
#include <string_view>

#include "kernels/interface/attest_kernel.h"

namespace attest {

struct BuiltinKernel {
    std::string_view id;  ///< `cpu_flash`, `mutant:M001`: what a person types
    const attest_kernel_api* api = nullptr;
    std::string_view summary;       ///< one line for `attest list kernels`
    const char* library = nullptr;  ///< where api is null: a plug-in beside the worker, and
    std::size_t index = 0;          ///< the kernel's number in it
};

std::span<const BuiltinKernel> cpu_kernels();      ///< kernels/cpu
std::span<const BuiltinKernel> cuda_kernels();     ///< kernels/cuda, on a GPU and on a CPU
std::span<const BuiltinKernel> mutant_kernels();   ///< kernels/mutants
std::span<const BuiltinKernel> builtin_kernels();  ///< all of them; linked into the worker alone

}  // namespace attest
