#pragma once
// What the plug-ins attest_simt.so (fast) and attest_simt_checked.so (every memory access checked)
// offer, in the order of their indices: first the kernels, then the planted bugs.

#include <cstddef>
#include <string_view>

#include "kernels/cuda/defect.hpp"

namespace attest_cuda {

inline constexpr const char* fast_plugin = "attest_simt.so";
inline constexpr const char* checked_plugin = "attest_simt_checked.so";
inline constexpr std::string_view checked_suffix = ":checked";

struct SimtKernel {
    std::string_view name, summary;
    bool f32 = true, rope = false, splits = false, top_left = false;
};

inline constexpr SimtKernel simt_kernels[] = {
    {.name = "simt_naive", .summary = "the CUDA definition, a thread a query"},
    {.name = "simt_flash", .summary = "CUDA, tiles in shared memory, online softmax"},
    {.name = "simt_flash_top_left",
     .summary = "simt_flash with causal masks aligned top-left",
     .top_left = true},
    {.name = "simt_flash_mma", .summary = "CUDA, tensor cores and cp.async", .f32 = false},
    {.name = "simt_decode",
     .summary = "CUDA, split-KV, paged, the last block merges",
     .rope = true,
     .splits = true},
};
inline constexpr std::size_t simt_kernel_count = sizeof simt_kernels / sizeof simt_kernels[0];

/// One defect in simt_flash (f32) or simt_flash_mma (bf16), and the plug-in it is judged in.
struct SimtMutant {
    std::string_view id;
    Defect defect;
    bool mma, checked;
};

inline constexpr SimtMutant simt_mutants[] = {
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
inline constexpr std::size_t simt_mutant_count = sizeof simt_mutants / sizeof simt_mutants[0];

}  // namespace attest_cuda
