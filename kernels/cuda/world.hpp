#pragma once
// The two worlds a launch may happen in, and what a plug-in says and does differently there.

#include <span>
#include <string>

#include "kernels/cuda/params.hpp"
#include "kernels/interface/attest_kernel.h"

namespace attest::cuda {

using Launch = int (*)(ElementFormat, const Params&, void* stream);

struct World {
    std::string prefix, suffix;  ///< of a kernel's name
    const char* manifest;        ///< the part of it that is the world's
    std::span<const Launch> launches, backward;  ///< in the order of the kernels; null: none
    /// What forward() and backward() return.
    int (*run)(Launch, ElementFormat, const Params&, const attest_call&, char* error,
               std::size_t error_cap);
};

const World& world();

}  // namespace attest::cuda
