#pragma once
// One query row's view of the problem: which keys it may see and what is added to their scores.

#include "kernels/cuda/element.cuh"

namespace attest::cuda {

struct CudaRow {
    const Params& p;
    std::int64_t b, h, kv_head, i;
    std::int64_t queries, keys;  ///< valid lengths of this sequence
    std::int64_t offset;         ///< query i stands at key position i + offset

    __device__ CudaRow(const Params& params, std::int64_t batch, std::int64_t head,
                       std::int64_t query)
        : p(params),
          b(batch),
          h(head),
          kv_head(head / (params.heads_q / params.heads_kv)),
          i(query) {
        queries = p.lens_q != nullptr ? p.lens_q[b] : p.len_q;
        keys = p.lens_kv != nullptr ? p.lens_kv[b] : p.len_kv;
        offset = p.top_left ? 0 : keys - queries;
    }

    __device__ bool is_query() const { return i < queries; }

    /// Keys outside [first_key, end_key) are hidden whatever the mask tensor says.
    __device__ std::int64_t end_key() const {
        std::int64_t end = keys;
        if (p.causal) end = min(end, i + offset + 1);
        if (p.window_right >= 0) end = min(end, i + offset + p.window_right + 1);
        return max(end, std::int64_t{0});
    }
    __device__ std::int64_t first_key() const {
        return p.window_left >= 0 ? max(i + offset - p.window_left, std::int64_t{0}) : 0;
    }

    template <typename T>
    __device__ const T* key(std::int64_t j) const {
        return located<T>(p.k, j);
    }
    template <typename T>
    __device__ const T* value(std::int64_t j) const {
        return located<T>(p.v, j);
    }
    template <typename T>
    __device__ const T* located(const Strided& tensor, std::int64_t j) const {
        if (p.block_table == nullptr) return at<T>(tensor, b, kv_head, j, 0);
        const std::int64_t page = p.block_table[b * p.block_table_stride + j / p.page_size];
        return at<T>(tensor, page, kv_head, j % p.page_size, 0);
    }

    /// The score that enters the softmax, or -inf where the key is hidden. product is scale q.k.
    template <typename T>
    __device__ float score(float product, std::int64_t j) const {
        if (j < first_key() || j >= end_key()) return -INFINITY;
        float s = p.softcap_f32 > 0 ? p.softcap_f32 * tanhf(product / p.softcap_f32) : product;
        if (p.alibi_slopes != nullptr) {
            const std::int64_t distance = i + offset - j;
            s -= p.alibi_slopes[h] * static_cast<float>(distance < 0 ? -distance : distance);
        }
        if (p.mask_kind == ATTEST_MASK_BOOL && *at<unsigned char>(p.mask, b, h, i, j) == 0)
            return -INFINITY;
        if (p.mask_kind != ATTEST_MASK_ADDITIVE) return s;
        const float bias = Number<T>::read(*at<T>(p.mask, b, h, i, j));
        return bias == -INFINITY ? bias : s + bias;  // a hidden key's score may be NaN
    }

    __device__ float first_max() const { return p.sinks != nullptr ? p.sinks[h] : -INFINITY; }
    __device__ float first_sum() const { return p.sinks != nullptr ? 1.0f : 0.0f; }
    __device__ void write_lse(float m, float l) const {
        if (p.lse.data == nullptr) return;
        const bool some = is_query() && !(l == 0.0f);
        *at<float>(p.lse, b, h, i, 0) = some ? m + logf(l) : -INFINITY;
    }
};

/// exp(s - m). A hidden key's weight is -0, also where no key has been seen and m is -inf: it adds
/// nothing, and can still be told from a visible key's weight that has underflowed. The exponential
/// is taken either way: a branch a key costs a GPU more, since it waits for each.
__device__ inline float weight(float s, float m) {
    const float visible = expf(s - m);
    return s == -INFINITY ? -0.0f : visible;
}
__device__ inline bool hidden(float weight) {
    return weight == 0.0f && __float_as_int(weight) != 0;
}
/// The running maximum. It need not keep a NaN score: that one's weight is NaN whatever the
/// maximum.
__device__ inline float larger(float a, float b) {
    return fmaxf(a, b);
}
/// What the past is multiplied by when the maximum grows from m to grown.
__device__ inline float rescale(float m, float grown) {
    const float kept = expf(m - grown);
    return m == -INFINITY ? 0.0f : kept;
}

}  // namespace attest::cuda
