#pragma once
// Where things lie for the plain flash kernel: its buffers, which key head a query head reads, and
// loading queries, keys and values.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/flash_body_mask.hpp"
#include "kernels/cpu/flash_body_softmax.hpp"

namespace attest::kernel {

struct PlainBuffers {
    float *queries, *keys, *values, *scores, *max, *sum, *output, *written;
    bool *hidden, *seen;
    PlainBuffers(const attest_problem& p, Scratch& scratch)
        : queries(scratch.take<float>(plain_rows * p.dim_qk)),
          keys(scratch.take<float>(plain_tile * p.dim_qk)),
          values(scratch.take<float>(plain_tile * p.dim_v)),
          scores(scratch.take<float>(plain_tile)),
          max(scratch.take<float>(plain_rows)),
          sum(scratch.take<float>(plain_rows)),
          output(scratch.take<float>(plain_rows * p.dim_v)),
          written(scratch.take<float>(p.dim_v)),
          hidden(scratch.take<bool>(plain_tile)),
          seen(scratch.take<bool>(plain_rows)) {}
};

/// The call as this kernel addresses it.
template <Defect defect>
Call addressed(Call call) noexcept {
    const attest_problem& p = call.problem;
    if constexpr (defect == Defect::m073_head_stride_assumed) {
        call.k.stride[1] = p.len_kv * p.dim_qk;
    }
    if constexpr (defect == Defect::m074_values_by_key_strides) call.v.stride = call.k.stride;
    if constexpr (defect == Defect::m092_lse_transposed) {
        call.lse.stride = {p.len_q * p.heads_q, 1, p.heads_q, 0};
    }
    if constexpr (defect == Defect::m174_mask_keys_contiguous) {
        if (call.mask.shape[3] > 1) call.mask.stride[3] = 1;
    }
    if constexpr (defect == Defect::m175_lse_contiguous) {
        call.lse.stride = {p.heads_q * p.len_q, p.len_q, 1, 0};
    }
    return call;
}

template <Defect defect>
struct PlainLoader {
    const Call& call;
    PlainBuffers& at;

    std::int64_t kv_head(std::int64_t head) const noexcept {
        const std::int64_t heads_kv = call.problem.heads_kv;
        if constexpr (defect == Defect::m079_head_by_heads_kv) {
            return std::min(head / heads_kv, heads_kv - 1);
        }
        if constexpr (defect == Defect::m080_group_padded) {
            const auto padded = std::bit_ceil(static_cast<std::uint64_t>(call.group));
            return head / static_cast<std::int64_t>(padded);
        }
        if constexpr (defect == Defect::m176_group_of_eight_at_most) {
            if (head % call.group >= 8) return (head / call.group + 1) % heads_kv;
        }
        if constexpr (defect == Defect::e07_head_modulo_one) {
            if (heads_kv == 1) return head % heads_kv;
        }
        return head / call.group;
    }

    void queries(const QueryBlock& block) const noexcept {
        const attest_problem& p = call.problem;
        for (std::int64_t r = 0; r < block.rows; ++r) {
            std::byte* from = call.q.at(block.segment.batch, block.head, block.row0 + r);
            float* query = at.queries + r * p.dim_qk;
            row(call.q, from, p.dim_qk, query);
            if constexpr (defect == Defect::m145_query_scaled_in_place) {
                for (std::int64_t c = 0; c < p.dim_qk; ++c) query[c] *= static_cast<float>(p.scale);
                store_row(from, call.q.format, call.q.stride[3], p.dim_qk, query);
            }
            start(block, r);
        }
    }

    void tile(const QueryBlock& block, std::int64_t key0, std::int64_t keys) const noexcept {
        const std::int64_t b = block.segment.batch, dim_qk = call.problem.dim_qk;
        for (std::int64_t j = 0; j < keys; ++j) {
            const std::byte* key = call.k.at(b, block.kv_head, key0 + j);
            row(call.k, key, dim_qk, at.keys + j * dim_qk);
        }
        values(block, key0, 0, keys);
        if constexpr (defect == Defect::m017_tail_values_unmasked) {
            values(block, key0, keys, tail_end(key0));
        }
    }

    /// End of the tile where only the axis bounds it.
    std::int64_t tail_end(std::int64_t key0) const noexcept {
        return std::min(plain_tile, call.problem.len_kv - key0);
    }

    float sink(std::int64_t head) const noexcept {
        const float sink = call.sinks.real(head);
        if constexpr (defect == Defect::m171_sink_scaled) {
            return sink * static_cast<float>(call.problem.scale);
        }
        return sink;
    }

private:
    void values(const QueryBlock& block, std::int64_t key0, std::int64_t first,
                std::int64_t last) const noexcept {
        const std::int64_t b = block.segment.batch, dim_v = call.problem.dim_v;
        for (std::int64_t j = first; j < last; ++j) {
            const std::byte* value = call.v.at(b, block.kv_head, key0 + j);
            row(call.v, value, dim_v, at.values + j * dim_v);
        }
    }

    void row(const Operand& operand, const std::byte* from, std::int64_t count,
             float* to) const noexcept {
        load_row(from, operand.format, operand.stride[3], count, to);
        if constexpr (defect == Defect::c06_inputs_to_bf16) {
            for (std::int64_t c = 0; c < count; ++c) to[c] = rounded(to[c], Format::bf16);
        }
    }

    /// No key seen yet; or, with a sink, one score seen that has no value.
    void start(const QueryBlock& block, std::int64_t r) const noexcept {
        at.max[r] = minus_infinity;
        if constexpr (defect == Defect::m041_max_from_minus_5e4) at.max[r] = -5e4f;
        at.sum[r] = defect == Defect::e03_sum_from_one ? 1.0f : 0.0f;
        at.seen[r] = false;
        std::fill_n(at.output + r * call.problem.dim_v, call.problem.dim_v, 0.0f);
        if (call.problem.sink == 0 || sink_comes_last<defect>) return;
        at.max[r] = no_frame<defect> ? 0.0f : sink(block.head);
        at.sum[r] = no_frame<defect> ? std::exp(sink(block.head)) : 1.0f;
        at.seen[r] = true;
    }
};

}  // namespace attest::kernel
