#pragma once
// The kernels that ship with attest. They live inside the worker program, or in a plug-in beside
// it, and are reached through the same C ABI as anybody else's; the host knows only what the worker
// tells of them (builtin_catalogue.hpp).

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/interface/attest_kernel.h"
#include "kernels/interface/mutant.hpp"

namespace attest::kernel {

struct BuiltinKernel {
    std::string_view id;  ///< `cpu_flash`, `mutant:M001`: what a person types
    const attest_kernel_api* api = nullptr;
    std::string_view summary;       ///< one line for `attest list kernels`
    const char* library = nullptr;  ///< where api is null: a plug-in beside the worker, and
    std::size_t index = 0;          ///< the kernel's number in it
    /// It is correct, and attest's own tests judge it by this many cases of every law. None: the
    /// tests do not, for it is planted, or needs a GPU.
    std::int64_t cases = 24;
    const Mutant* mutant = nullptr;  ///< a planted bug
    const void* state = nullptr;     ///< what its functions are given, where api has no create()
};

std::span<const BuiltinKernel> builtin_kernels();  ///< all of them; linked into the worker alone

}  // namespace attest::kernel

// The rooms' own, each defined there.
namespace attest::cpu {
std::span<const kernel::BuiltinKernel> cpu_kernels();
}
namespace attest::cuda {
std::span<const kernel::BuiltinKernel> cuda_kernels();  ///< on a GPU and on a CPU
}
namespace attest::museum {
std::span<const kernel::BuiltinKernel> mutant_kernels();
}
