#pragma once
// A planted bug of a CPU kernel in one row: the story, and the step of the correct kernel that it
// exchanges (kernels/cpu/flash_steps.hpp, decode_steps.hpp,
// backward_steps.hpp). A file of this folder holds rows on
// one subject and gives them by a function of its own name; the build lists the files.

#include <cstddef>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/cpu/backward_steps.hpp"
#include "kernels/cpu/decode_steps.hpp"
#include "kernels/cpu/flash_steps.hpp"
#include "kernels/interface/attest_kernel.h"
#include "kernels/interface/mutant.hpp"

namespace attest::museum {

/// In place of the whole of cpu_flash_plain.
using WholeForward = int (*)(void* state, const attest_call* call, char* error, std::size_t cap);

/// The backward of cpu_naive behind cpu_flash, which declares how it rounds P and dS: what these
/// steps do not round is not rounded.
struct RoundedBackward {
    cpu::BackwardSteps<float> steps;
    bool operator==(const RoundedBackward&) const = default;
};

struct PlantedBug {
    kernel::Mutant about;  ///< without the kernel's name, which follows from
    std::variant<cpu::FlashSteps, cpu::DecodeSteps, cpu::BackwardSteps<float>, RoundedBackward,
                 WholeForward>
        change;
    /// What its manifest says in "numerics" beside what the correct kernel's says.
    std::string_view declares = {};
};

/// cpu_flash_plain, cpu_decode, cpu_naive or cpu_flash.
const attest_kernel_api& correct_kernel(std::string_view id);

}  // namespace attest::museum
