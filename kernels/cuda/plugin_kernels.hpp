#pragma once
// The kernels that the plug-ins of this folder offer, in the order of their numbers. On a CPU the
// planted bugs come behind them.

#include <cstddef>
#include <string_view>

namespace attest::cuda {

inline constexpr const char* gpu_plugin = "attest_cuda.so";
inline constexpr const char* fast_plugin = "attest_simt.so";
inline constexpr const char* checked_plugin =
    "attest_simt_checked.so";  ///< on a CPU, every memory access checked
inline constexpr std::string_view checked_suffix = ":checked";

/// cuda_NAME on a GPU, simt_NAME on a CPU.
struct PluginKernel {
    std::string_view name, summary;
    bool f32 = true, rope = false, splits = false, top_left = false, mma = false;
    /// Of each law in attest's own tests, on a CPU and there with every access checked: few, for a
    /// simulated thread costs.
    int cases = 6, checked_cases = 4;
};

inline constexpr PluginKernel plugin_kernels[] = {
    {.name = "naive",
     .summary = "CUDA, the definition, a thread a query",
     .cases = 12,
     .checked_cases = 4},
    {.name = "flash", .summary = "CUDA, tiles in shared memory, online softmax"},
    {.name = "flash_top_left",
     .summary = "CUDA, tiles, causal masks aligned top-left",
     .top_left = true,
     .checked_cases = 0},
    {.name = "flash_mma", .summary = "CUDA, tensor cores and cp.async", .f32 = false, .mma = true},
    {.name = "decode",
     .summary = "CUDA, split-KV, paged, the last block merges",
     .rope = true,
     .splits = true},
};
inline constexpr std::size_t plugin_kernel_count = sizeof plugin_kernels / sizeof plugin_kernels[0];

}  // namespace attest::cuda
