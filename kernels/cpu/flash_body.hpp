#pragma once
// A plain tiled flash attention, without SIMD: blocks of 8 queries against tiles of 16 keys, with
// the online softmax of flash_body_softmax.hpp. It is the body of the built-in kernel
// cpu_flash_plain (Defect::none) and of the planted bugs of kernels/mutants, one `if constexpr`
// each.
//
// Accumulates in f32; weights are rounded to the format of the queries before they meet the values,
// their sum adds them unrounded. Not supported: f64, packed documents, pages, splits, RoPE.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/border.hpp"
#include "kernels/cpu/flash_body_finish.hpp"
#include "kernels/cpu/flash_body_load.hpp"
#include "kernels/cpu/flash_body_mask.hpp"
#include "kernels/cpu/flash_body_softmax.hpp"

namespace attest::kernel {

inline constexpr Offer plain_offer{
    .documents = false, .paged = false, .splits = false, .rope = false, .f64 = false};

template <Defect defect>
class PlainFlash {
public:
    PlainFlash(const Call& call, PlainBuffers& at)
        : call_(addressed<defect>(call)), p_(call_.problem), at_(at) {}

    void run() noexcept {
        for (std::int64_t index = 0; index < segment_count(call_); ++index) {
            Segment s = segment_at(call_, index);
            if constexpr (defect == Defect::m033_lengths_ignored) s.keys = p_.len_kv;
            std::int64_t end = s.queries;
            if constexpr (defect == Defect::m148_last_query_tile_dropped) {
                const std::int64_t blocks = (end + plain_rows - 1) / plain_rows;
                if (blocks > 1 && blocks % 2 != 0) end = (blocks - 1) * plain_rows;
            }
            for (std::int64_t head = 0; head < p_.heads_q; ++head) {
                for (std::int64_t row0 = 0; row0 < end; row0 += plain_rows) {
                    run_block(
                        {s, head, load_.kv_head(head), row0, std::min(plain_rows, end - row0)});
                }
            }
        }
    }

private:
    void run_block(const QueryBlock& block) noexcept {
        load_.queries(block);
        const PlainMask<defect> mask{call_, block};
        const KeyRange tiles = mask.tiles();
        for (std::int64_t tile = tiles.first; tile < tiles.last; ++tile) {
            const std::int64_t key0 = tile * plain_tile;
            const std::int64_t keys = std::min(plain_tile, mask.key_limit() - key0);
            if constexpr (defect == Defect::m034_tile_skipped_by_first) {
                if (mask.mask_value(block.row0, key0).hidden) continue;
            }
            load_.tile(block, key0, keys);
            for (std::int64_t r = 0; r < block.rows; ++r) take_tile(mask, r, key0, keys);
        }
        for (std::int64_t r = 0; r < block.rows; ++r) finish_.row(block, r);
        if constexpr (defect == Defect::m090_row_past_the_end) finish_.past_the_end(block);
    }

    void take_tile(const PlainMask<defect>& mask, std::int64_t r, std::int64_t key0,
                   std::int64_t keys) noexcept {
        const std::int64_t i = mask.block.row0 + r;
        for (std::int64_t j = 0; j < keys; ++j) {
            Bias<float> bias;
            at_.hidden[j] = !mask.reachable(i, key0 + j, key0);
            if (!at_.hidden[j]) bias = mask.mask_value(i, key0 + j);
            at_.hidden[j] = at_.hidden[j] || bias.hidden;
            const float dot = dot_product(at_.queries + r * p_.dim_qk, at_.keys + j * p_.dim_qk);
            at_.scores[j] = mask.score(dot, bias.value + mask.alibi(i, key0 + j));
        }
        PlainRow row{at_.max[r], at_.sum[r],    at_.seen[r], at_.output + r * p_.dim_v,
                     at_.scores, at_.hidden,    at_.values,  keys,
                     p_.dim_v,   call_.format_q};
        reveal<defect>(row, at_.hidden);
        absorb<defect>(row);
        if constexpr (defect == Defect::m017_tail_values_unmasked) {
            for (std::int64_t j = keys; j < load_.tail_end(key0); ++j) {
                add_value<defect>(row, 0.0f, at_.values + j * p_.dim_v);
            }
        }
    }

    float dot_product(const float* query, const float* key) const noexcept {
        std::int64_t channels = p_.dim_qk;
        if constexpr (defect == Defect::m081_last_channels_dropped) channels -= channels % 8;
        float dot = 0;
        for (std::int64_t c = 0; c < channels; ++c) dot += query[c] * key[c];
        return dot;
    }

    Call call_;
    const attest_problem& p_;
    PlainBuffers& at_;
    PlainLoader<defect> load_{call_, at_};
    PlainFinish<defect> finish_{call_, load_, at_};
};

template <Defect defect>
int plain_flash(void*, const attest_call* from, char* error, std::size_t cap) {
    Call call;
    if (!read_call(from, call, error, cap)) return 1;
    Scratch scratch(from->workspace, from->workspace_bytes);
    PlainBuffers buffers(call.problem, scratch);
    if (!scratch.enough()) return fail(error, cap, "the workspace is smaller than asked for");
    PlainFlash<defect>(call, buffers).run();
    write_absent_rows(call);
    return 0;
}

inline int plain_supports(void*, const attest_problem* problem, char* reason, std::size_t cap) {
    return answer(plain_offer, problem, reason, cap);
}

inline std::size_t plain_workspace(void*, const attest_problem* problem) {
    Scratch scratch;
    PlainBuffers buffers(*problem, scratch);
    return scratch.wanted();
}

}  // namespace attest::kernel
