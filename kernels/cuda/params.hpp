#pragma once
// What every kernel of this folder is called with: plain data, passed by value to the device.

#include <cstdint>

namespace attest_cuda {

/// A strided tensor [batch, heads, length, dim]; strides in elements, 64-bit throughout.
struct Strided {
    void* data = nullptr;
    std::int64_t stride[4] = {0, 0, 0, 0};
};

enum class MaskTensor : int { none, boolean, additive };

struct Params {
    Strided q, k, v, o, lse, mask;
    const std::int32_t* lens_q = nullptr;  ///< [batch] or null
    const std::int32_t* lens_kv = nullptr;
    const std::int32_t* block_table = nullptr;  ///< [batch, pages] or null: contiguous
    const float* alibi_slopes = nullptr;        ///< [heads_q] or null
    const float* sinks = nullptr;
    std::int64_t block_table_stride = 0, page_size = 0;
    std::int64_t batch = 1, heads_q = 1, heads_kv = 1, len_q = 1, len_kv = 1, dim_qk = 1, dim_v = 1;
    float scale = 1, softcap = 0;
    bool causal = false, top_left = false;
    std::int64_t window_left = -1, window_right = -1;
    MaskTensor mask_kind = MaskTensor::none;
    bool chunks_aligned = false;  ///< rows of q, k, v start on 16 bytes: cp.async may be used
    // Rotary positions; pairs == 0 is none. Key j stands at rope_offset + j.
    std::int64_t rope_dims = 0, rope_offset = 0;
    float rope_base = 10000;
    bool rope_interleaved = false;
    // Decode: partial results of each split, and one arrival counter a row of output.
    std::int64_t splits = 1;
    float* partial = nullptr;           ///< [rows, splits, dim_v + 2]
    std::uint32_t* arrivals = nullptr;  ///< [rows], zero before the launch
};

/// No grid has zero blocks: where there is no output, nothing is launched.
inline bool nothing_to_do(const Params& p) {
    return p.batch == 0 || p.heads_q == 0 || p.len_q == 0;
}

enum class Element : int { f32, f16, bf16 };

}  // namespace attest_cuda
