#pragma once
// The kernels that ship with attest. They live in plug-ins beside the worker program, and are
// reached through the same C ABI as anybody else's; the host knows only what the worker tells of
// them (builtin_catalogue.hpp).

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
    const char* library = nullptr;  ///< where api is null: another plug-in beside the worker, and
    std::size_t index = 0;          ///< the kernel's number in it
    /// It is correct, and attest's own tests judge it by this many cases of every law. None: the
    /// tests do not, for it is planted, or needs a GPU.
    std::int64_t cases = 24;
    const Mutant* mutant = nullptr;  ///< a planted bug
    const void* state = nullptr;     ///< what its functions are given, where api has no create()
};

/// The plug-in beside the worker that holds the list of them all, and what it exports: a C
/// interface's function with a type of ours, for both are built together.
constexpr const char* builtin_library = "attest_builtin.so";
extern "C" ATTEST_EXPORT void attest_builtin_kernels(std::span<const BuiltinKernel>& list);

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
