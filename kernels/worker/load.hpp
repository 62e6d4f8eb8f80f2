#pragma once
// How the worker gets hold of a kernel: from its own list, or from a shared library.

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "kernels/interface/attest_kernel.h"
#include "kernels/interface/builtin.hpp"

namespace attest::worker {

/// Why a kernel cannot be had: the sentence after the kernel's name, then lines of remedy.
class LoadFailure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A kernel that is ready to be asked. The table is a copy: what an older plug-in's struct does not
/// reach is NULL.
struct LoadedKernel {
    attest_kernel_api api{};
    void* state = nullptr;
    void* library = nullptr;  ///< dlopen's handle, where it came from one
    bool on_device = false;   ///< its manifest declares CUDA memory
};

/// Why a built-in kernel is not to be had: its plug-in is not beside the worker. Empty where it is.
std::string absent_library(const kernel::BuiltinKernel& kernel);

/// All that ship with attest. Throws LoadFailure.
std::span<const kernel::BuiltinKernel> builtin_kernels();

/// Throws LoadFailure.
LoadedKernel load_builtin(const std::string& id);
LoadedKernel load_library(const std::string& path, std::size_t index);

/// Runs a call into foreign code; what it throws comes back as "TYPE: what()", empty for nothing.
/// std::bad_alloc is also noted in circumstances.
template <typename Function>
std::string caught(Function&& function);
std::string describe_current_exception();

template <typename Function>
std::string caught(Function&& function) {
    try {
        function();
    } catch (...) {
        return describe_current_exception();
    }
    return {};
}

}  // namespace attest::worker
