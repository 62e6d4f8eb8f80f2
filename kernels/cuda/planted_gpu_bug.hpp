#pragma once
// What a planted bug of the GPU kernels is, and what the rows of backward share (planted_bugs.hpp).

#include <string_view>

#include "kernels/cuda/care.hpp"
#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/interface/mutant.hpp"

namespace attest::cuda {

struct PlantedGpuBug {
    kernel::Mutant about;
    Care care;
    bool claims_order = false;  ///< of the sums of its backward, which atomics make

    constexpr bool mma() const { return about.kernel.starts_with("simt_flash_mma"); }
    constexpr bool backward() const { return about.kernel.starts_with("simt_flash_atomic"); }
    constexpr bool checked() const { return about.kernel.ends_with(checked_suffix); }
};

/// A bug of the backward of simt_flash_atomic.
constexpr PlantedGpuBug of_backward(std::string_view id, std::string_view bug_class,
                                    std::string_view change, std::string_view trigger,
                                    kernel::LawIds must, Care care,
                                    std::string_view source = {}) {
    return {{.id = id,
             .kernel = "simt_flash_atomic",
             .bug_class = bug_class,
             .operation = "backward",
             .change = change,
             .trigger = trigger,
             .source = source,
             .must = must},
            care};
}

/// A claim that simt_flash_atomic does not make, and cannot keep.
constexpr PlantedGpuBug claimed_in_order(std::string_view id, std::string_view change,
                                         std::string_view trigger, kernel::LawIds must) {
    PlantedGpuBug bug = of_backward(id, "C2", change, trigger, must, {});
    bug.claims_order = true;
    return bug;
}

}  // namespace attest::cuda
