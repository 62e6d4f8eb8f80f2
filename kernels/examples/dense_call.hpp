#pragma once
// For kernels that want [heads, length, D] without gaps: attest's tensors have any strides.

#include <cstdint>
#include <vector>

#include "kernels/interface/attest_kernel.h"

/// Visits the elements in the order [batch, head, length, dim].
template <typename Visit>
inline void for_each_element(const DLTensor& t, Visit visit) {
    auto* data = reinterpret_cast<float*>(static_cast<char*>(t.data) + t.byte_offset);
    for (int64_t b = 0; b < t.shape[0]; ++b)
        for (int64_t h = 0; h < t.shape[1]; ++h)
            for (int64_t i = 0; i < t.shape[2]; ++i)
                for (int64_t d = 0; d < t.shape[3]; ++d)
                    visit(data[b * t.strides[0] + h * t.strides[1] + i * t.strides[2] +
                               d * t.strides[3]]);
}

inline std::vector<float> dense(const DLTensor* t) {
    std::vector<float> all;
    for_each_element(*t, [&](float x) { all.push_back(x); });
    return all;
}

inline void undense(const std::vector<float>& all, const DLTensor* t) {
    std::size_t at = 0;
    for_each_element(*t, [&](float& x) { x = all[at++]; });
}

/// f32, one head of keys for each of queries, dim_v = dim_qk, causal or no mask.
inline const char* refusal(const attest_problem& p, int64_t dim_max) {
    if (p.format_q != ATTEST_F32 || p.format_kv != ATTEST_F32 || p.format_o != ATTEST_F32)
        return "f32 only";
    if (p.heads_q != p.heads_kv) return "as many key heads as query heads";
    if (p.dim_qk != p.dim_v || p.dim_qk > dim_max) return "one head dimension, not that large";
    if (p.mask_kind != 0 || p.window_left >= 0 || p.window_right >= 0 || p.flags != 0)
        return "the only mask is causal";
    if (p.softcap != 0 || p.sink != 0 || p.alibi != 0 || p.rope_kind != 0 || p.dropout_p != 0)
        return "no soft cap, sink, ALiBi, RoPE or dropout";
    if (p.page_size != 0 || p.cache_len != 0 || p.splits != 0) return "no cache";
    if (p.want_lse != 0 || p.want_grad != 0) return "no log-sum-exp, no gradients";
    return nullptr;
}
