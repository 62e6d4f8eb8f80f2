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

/// A bug that the runtime's checks alone are sure to see.
constexpr PlantedGpuBug diagnosed(std::string_view id, std::string_view kernel,
                                  std::string_view bug_class, std::string_view change,
                                  std::string_view trigger, Care care) {
    const bool mma = kernel.starts_with("simt_flash_mma");
    return {{.id = id,
             .kernel = kernel,
             .bug_class = bug_class,
             .operation = mma ? "flash forward, tensor cores" : "flash forward",
             .change = change,
             .trigger = trigger,
             .must = {"hygiene.diagnostics"}},
            care};
}

inline constexpr PlantedGpuBug planted_gpu_bugs[] = {
    {{.id = "M141",
      .kernel = "simt_flash",
      .bug_class = "C1",
      .operation = "flash forward",
      .change = "no __syncwarp between writing the weights to shared memory and reading them",
      .trigger = "an order of threads in which a lane runs ahead",
      .must = {"hygiene.schedule", "hygiene.deterministic", "reference.output"}},
     {.syncwarp_after_weights = false}},
    diagnosed("G01", "simt_flash_mma:checked", "C1",
              "no barrier between loading a tile and reading it", "any keys",
              {.barrier_after_load = false}),
    diagnosed("G02", "simt_flash_mma:checked", "C1",
              "no barrier before a stage of the double buffer is loaded again",
              "three tiles of keys", {.barrier_before_load = false}),
    diagnosed("G03", "simt_flash_mma:checked", "I8",
              "the tile copy runs one row past its shared array",
              "any keys; the numbers come out right", {.rows_too_many = 1}),
    {{.id = "G04",
      .kernel = "simt_flash_mma",
      .bug_class = "C1",
      .operation = "flash forward, tensor cores",
      .change = "the last group of cp.async copies is never waited for",
      .trigger = "any keys",
      .must = {"hygiene.diagnostics", "reference.output"}},
     {.last_copy_awaited = false}},
    diagnosed("G05", "simt_flash_mma:checked", "M4",
              "rows behind the last key of a partial tile are left as they were",
              "fewer keys than the first tile has rows", {.tail_cleared = false}),
    diagnosed("G06", "simt_flash", "C1",
              "a shuffle names half of the warp and all of it takes part", "any keys",
              {.all_lanes_named = false}),
    diagnosed("G07", "simt_flash_mma:checked", "C1",
              "warps without query rows skip the loop and its barriers",
              "fewer queries than a block has rows", {.idle_warps_stay = false}),
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
    diagnosed("G12", "simt_flash_mma:checked", "M4",
              "keys behind the last one are left as they were; their scores are hidden",
              "fewer keys than the first tile has rows; the numbers come out right",
              {.key_tail_cleared = false}),
    {{.id = "G12_fast",
      .kernel = "simt_flash_mma",
      .bug_class = "M4",
      .operation = "flash forward, tensor cores",
      .change = "G12 without the memory checker, whose diagnosis alone can see it",
      .trigger = "none",
      .equivalent = true},
     {.key_tail_cleared = false}},
    diagnosed("G13", "simt_flash:checked", "I8", "the tile copy runs one row past its shared array",
              "any keys", {.rows_too_many = 1}),
    diagnosed("G14", "simt_flash:checked", "C1",
              "warps without query rows skip the loop and its barriers",
              "fewer queries than a block has rows", {.idle_warps_stay = false}),
    {{.id = "G16",
      .kernel = "simt_flash_mma",
      .bug_class = "N1",
      .operation = "flash forward, tensor cores",
      .change = "the row maximum is reduced over half of a quad",
      .trigger = "the largest score in the other half",
      .must = {"reference.output"}},
     {.all_lanes_compared = false}},
    diagnosed("G17", "simt_flash_mma", "C1",
              "a shuffle names half of the warp and all of it takes part", "any keys",
              {.all_lanes_named = false}),
};
inline constexpr std::size_t planted_gpu_bug_count =
    sizeof planted_gpu_bugs / sizeof planted_gpu_bugs[0];

}  // namespace attest::cuda
