#pragma once
// What the plug-ins of this folder offer, in the order of their numbers: first the kernels, then,
// on a CPU, the planted bugs.

#include <cstddef>
#include <string_view>

#include "kernels/cuda/defect.hpp"

namespace attest_cuda {

inline constexpr const char* gpu_plugin = "attest_cuda.so";
inline constexpr const char* fast_plugin = "attest_simt.so";
inline constexpr const char* checked_plugin =
    "attest_simt_checked.so";  ///< on a CPU, every memory access checked
inline constexpr std::string_view checked_suffix = ":checked";

/// cuda_NAME on a GPU, simt_NAME on a CPU.
struct PluginKernel {
    std::string_view name, summary;
    bool f32 = true, rope = false, splits = false, top_left = false, mma = false;
};

inline constexpr PluginKernel plugin_kernels[] = {
    {.name = "naive", .summary = "CUDA, the definition, a thread a query"},
    {.name = "flash", .summary = "CUDA, tiles in shared memory, online softmax"},
    {.name = "flash_top_left",
     .summary = "CUDA, tiles, causal masks aligned top-left",
     .top_left = true},
    {.name = "flash_mma", .summary = "CUDA, tensor cores and cp.async", .f32 = false, .mma = true},
    {.name = "decode",
     .summary = "CUDA, split-KV, paged, the last block merges",
     .rope = true,
     .splits = true},
};
inline constexpr std::size_t plugin_kernel_count = sizeof plugin_kernels / sizeof plugin_kernels[0];

/// One defect in flash (f32) or flash_mma (bf16), and whether it is judged with accesses checked.
struct PlantedBug {
    std::string_view id;
    Defect defect;
    bool mma, checked;
};

inline constexpr PlantedBug planted_bugs[] = {
    {"M141", Defect::no_syncwarp_after_weights, false, false},
    {"G01", Defect::no_barrier_after_load, true, true},
    {"G02", Defect::tile_reused_early, true, true},
    {"G03", Defect::copy_one_row_too_far, true, true},
    {"G04", Defect::copy_never_awaited, true, false},
    {"G05", Defect::tail_not_cleared, true, true},
    {"G06", Defect::wrong_shuffle_mask, false, false},
    {"G07", Defect::idle_warps_skip_barriers, true, true},
    {"G08", Defect::narrow_reduction, false, false},
    {"G09", Defect::value_not_transposed, true, false},
    {"G10", Defect::lane_forgotten, true, false},
    {"G11", Defect::no_barrier_after_load, false, false},
    {"G12", Defect::key_tail_not_cleared, true, true},
    {"G12_fast", Defect::key_tail_not_cleared, true, false},
};
inline constexpr std::size_t planted_bug_count = sizeof planted_bugs / sizeof planted_bugs[0];

}  // namespace attest_cuda
