#pragma once
// The planted bugs that only threads have, a row each: the story, and the care that the kernel does
// not take. A row whose kernel ends in :checked is judged with every memory access checked. The
// plug-ins offer them behind the kernels, in this order, so that a row's place is its number.

#include <cstddef>
#include <string_view>

#include "kernels/cuda/care.hpp"
#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/interface/mutant.hpp"

namespace attest::cuda {

struct PlantedGpuBug {
    kernel::Mutant about;
    Care care;

    constexpr bool mma() const { return about.kernel.starts_with("simt_flash_mma"); }
    constexpr bool checked() const { return about.kernel.ends_with(checked_suffix); }
};

inline constexpr PlantedGpuBug planted_gpu_bugs[] = {
    {{.id = "M141",
      .kernel = "simt_flash",
      .bug_class = "C1",
      .operation = "flash forward",
      .change = "no __syncwarp between writing the weights to shared memory and reading them",
      .trigger = "an order of threads in which a lane runs ahead",
      .must = {"hygiene.schedule", "hygiene.deterministic", "reference.output"}},
     {.syncwarp_after_weights = false}},
    {{.id = "G01",
      .kernel = "simt_flash_mma:checked",
      .bug_class = "C1",
      .operation = "flash forward, tensor cores",
      .change = "no barrier between loading a tile and reading it",
      .trigger = "any keys",
      .must = {"hygiene.diagnostics"}},
     {.barrier_after_load = false}},
    {{.id = "G02",
      .kernel = "simt_flash_mma:checked",
      .bug_class = "C1",
      .operation = "flash forward, tensor cores",
      .change = "no barrier before a stage of the double buffer is loaded again",
      .trigger = "three tiles of keys",
      .must = {"hygiene.diagnostics"}},
     {.barrier_before_load = false}},
    {{.id = "G03",
      .kernel = "simt_flash_mma:checked",
      .bug_class = "I8",
      .operation = "flash forward, tensor cores",
      .change = "the tile copy runs one row past its shared array",
      .trigger = "any keys; the numbers come out right",
      .must = {"hygiene.diagnostics"}},
     {.rows_too_many = 1}},
    {{.id = "G04",
      .kernel = "simt_flash_mma",
      .bug_class = "C1",
      .operation = "flash forward, tensor cores",
      .change = "the last group of cp.async copies is never waited for",
      .trigger = "any keys",
      .must = {"hygiene.diagnostics", "reference.output"}},
     {.last_copy_awaited = false}},
    {{.id = "G05",
      .kernel = "simt_flash_mma:checked",
      .bug_class = "M4",
      .operation = "flash forward, tensor cores",
      .change = "rows behind the last key of a partial tile are left as they were",
      .trigger = "fewer keys than the first tile has rows",
      .must = {"hygiene.diagnostics"}},
     {.tail_cleared = false}},
    {{.id = "G06",
      .kernel = "simt_flash",
      .bug_class = "C1",
      .operation = "flash forward",
      .change = "a shuffle names half of the warp and all of it takes part",
      .trigger = "any keys",
      .must = {"hygiene.diagnostics"}},
     {.all_lanes_named = false}},
    {{.id = "G07",
      .kernel = "simt_flash_mma:checked",
      .bug_class = "C1",
      .operation = "flash forward, tensor cores",
      .change = "warps without query rows skip the loop and its barriers",
      .trigger = "fewer queries than a block has rows",
      .must = {"hygiene.diagnostics"}},
     {.idle_warps_stay = false}},
    {{.id = "G08",
      .kernel = "simt_flash",
      .bug_class = "N1",
      .operation = "flash forward",
      .change = "the row maximum is reduced over half of the warp",
      .trigger = "the largest score in the other half",
      .must = {"reference.output"}},
     {.all_lanes_compared = false}},
    {{.id = "G09",
      .kernel = "simt_flash_mma",
      .bug_class = "I2",
      .operation = "flash forward, tensor cores",
      .change = "ldmatrix without .trans for the values",
      .trigger = "any keys",
      .must = {"reference.output"}},
     {.values_transposed = false}},
    {{.id = "G10",
      .kernel = "simt_flash_mma",
      .bug_class = "N2",
      .operation = "flash forward, tensor cores",
      .change = "the row sum forgets half of a quad",
      .trigger = "keys in the forgotten lanes",
      .must = {"reference.output", "reference.lse", "probability.row_sum"}},
     {.all_lanes_summed = false}},
    {{.id = "G11",
      .kernel = "simt_flash",
      .bug_class = "C1",
      .operation = "flash forward",
      .change = "no barrier between loading a tile and reading it",
      .trigger = "an order of threads in which a warp runs ahead",
      .must = {"hygiene.schedule", "reference.output"}},
     {.barrier_after_load = false}},
    {{.id = "G12",
      .kernel = "simt_flash_mma:checked",
      .bug_class = "M4",
      .operation = "flash forward, tensor cores",
      .change = "keys behind the last one are left as they were; their scores are hidden",
      .trigger = "fewer keys than the first tile has rows; the numbers come out right",
      .must = {"hygiene.diagnostics"}},
     {.key_tail_cleared = false}},
    {{.id = "G12_fast",
      .kernel = "simt_flash_mma",
      .bug_class = "M4",
      .operation = "flash forward, tensor cores",
      .change = "G12 without the memory checker, whose diagnosis alone can see it",
      .trigger = "none",
      .equivalent = true},
     {.key_tail_cleared = false}},
};
inline constexpr std::size_t planted_gpu_bug_count =
    sizeof planted_gpu_bugs / sizeof planted_gpu_bugs[0];

}  // namespace attest::cuda
