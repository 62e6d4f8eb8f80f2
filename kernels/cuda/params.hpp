#pragma once
// What every kernel of this folder is called with: plain data, passed by value to the device.

#include <cstdint>

#include "kernels/interface/attest_kernel.h"

namespace attest::cuda {

/// A strided tensor [batch, heads, length, dim]; strides in elements, 64-bit throughout.
struct Strided {
    void* data = nullptr;
    std::int64_t stride[4] = {0, 0, 0, 0};
};

/// How many elements a mask has on each axis: its own, where it is shared 1.
struct Extents {
    std::int64_t axis[4] = {0, 0, 0, 0};
};

/// The problem as the ABI tells it, and what a launch needs besides. rope_dims is 0 without
/// rotary positions; splits is what this kernel chose.
struct Params : attest_problem {
    Params() : attest_problem{} {
        batch = heads_q = heads_kv = len_q = len_kv = dim_qk = dim_v = splits = 1;
        window_left = window_right = -1;
    }

    float scale_f32 = 1, softcap_f32 = 0;  ///< scale and softcap, in which scores are computed
    Strided q, k, v, o, lse, mask;
    const std::int32_t* lens_q = nullptr;  ///< [batch] or null
    const std::int32_t* lens_kv = nullptr;
    const std::int32_t* block_table = nullptr;  ///< [batch, pages] or null: contiguous
    std::int64_t block_table_stride = 0;
    const float* alibi_slopes = nullptr;  ///< [heads_q] or null
    const float* sinks = nullptr;
    bool top_left = false;
    bool chunks_aligned = false;  ///< rows of q, k, v start on 16 bytes: cp.async may be used
    /// Backward; a gradient that is not wanted has no data, and d_lse none where it is 0.
    Strided d_o, d_lse, d_q, d_k, d_v, d_mask, d_sinks, d_slopes;
    Extents mask_extents;      ///< of d_mask
    float* d_q_sum = nullptr;  ///< [batch, heads_q, len_q, dim_qk]: where atomics add up dQ
    // Decode: partial results of each split, and one arrival counter a row of output.
    float* partial = nullptr;           ///< [rows, splits, dim_v + 2]
    std::uint32_t* arrivals = nullptr;  ///< [rows], zero before the launch
};

/// No grid has zero blocks: where there is no output, nothing is launched.
inline bool nothing_to_do(const Params& p) {
    return p.batch == 0 || p.heads_q == 0 || p.len_q == 0;
}

enum class ElementFormat : int { f32, f16, bf16 };

}  // namespace attest::cuda
