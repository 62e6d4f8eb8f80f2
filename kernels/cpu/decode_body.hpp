#pragma once
// Split-KV decoding: the keys of a sequence are cut into `splits` ranges, each range gives every
// query its own (m, l, acc) by the online softmax, and the parts are merged:
//   m = max m_s,  w_s = exp(m_s - m),  O = sum w_s acc_s / sum w_s l_s.
// Keys and values are read where they lie, contiguous or in pages. The body of the built-in kernel
// cpu_decode (Defect::none) and of the planted bugs of kernels/mutants.
//
// Accumulates in f32, in f64 where an input is f64; weights are not rounded before they meet the
// values. Dot products run in eight interleaved sums. Supports any number of queries; not dropout,
// gradients, ring buffers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/border.hpp"
#include "kernels/cpu/call.hpp"
#include "kernels/cpu/decode_merge.hpp"
#include "kernels/cpu/decode_state.hpp"
#include "kernels/cpu/defect.hpp"
#include "kernels/cpu/score.hpp"

namespace attest::kernel {

template <Defect defect, typename Real>
class SplitDecode {
public:
    SplitDecode(const Call& call, DecodeBuffers<Real>& at)
        : call_(call), p_(call_.problem), at_(at) {
        if constexpr (defect == Defect::m010_decode_ignores_window) {
            if (p_.len_q == 1) call_.problem.window_left = call_.problem.window_right = -1;
        }
    }

    void run() {
        at_.rope.fill();
        for (std::int64_t index = 0; index < segment_count(call_); ++index) {
            Segment s = segment_at(call_, index);
            splits_ = split_count(p_, s.keys);
            if (defect == Defect::m147_splits_by_batch && p_.splits == 0 && p_.batch > 1)
                splits_ = 1;
            if constexpr (defect == Defect::m077_batch_stride_zero) {
                if (splits_ > 1) call_.o.stride[0] = 0;
            }
            if constexpr (defect == Defect::m088_table_stride_of_sequence) {
                if (p_.page_size > 0) {
                    call_.block_table.stride[0] = (s.keys + p_.page_size - 1) / p_.page_size;
                }
            }
            if constexpr (defect == Defect::m087_last_page_in_full) {
                if (p_.page_size > 0) {
                    s.keys = (s.keys + p_.page_size - 1) / p_.page_size * p_.page_size;
                }
            }
            for (std::int64_t kv_head = 0; kv_head < p_.heads_kv; ++kv_head) {
                run_head(s, kv_head);
            }
        }
    }

private:
    void run_head(const Segment& s, std::int64_t kv_head) {
        rows_ = call_.group * s.queries;
        for (std::int64_t r = 0; r < rows_; ++r) {
            const std::int64_t head = kv_head * call_.group + r / s.queries, i = r % s.queries;
            Real* query = at_.queries + r * p_.dim_qk;
            load_row(call_.q.at(s.batch, head, s.query0 + i), call_.q.format, call_.q.stride[3],
                     p_.dim_qk, query);
            std::int64_t position = i + s.offset;
            if constexpr (defect == Defect::m160_query_at_position_zero) {
                if (p_.len_q == 1) position = 0;
            }
            at_.rope.turn_query(position, query);
        }
        for (std::int64_t split = 0; split < splits_; ++split) run_split(s, kv_head, split);
        for (std::int64_t r = 0; r < rows_; ++r) {
            merge_parts<defect>(call_, s, kv_head, r, rows_, splits_ * rows_, at_);
        }
    }

    void run_split(const Segment& s, std::int64_t kv_head, std::int64_t split) {
        std::fill_n(at_.max + split * rows_, rows_, -std::numeric_limits<Real>::infinity());
        std::fill_n(at_.sum + split * rows_, rows_, Real{0});
        std::fill_n(at_.seen + split * rows_, rows_, false);
        std::fill_n(at_.output + split * rows_ * p_.dim_v, rows_ * p_.dim_v, Real{0});
        const KeyRange keys = split_range<defect>(s.keys, splits_, split);
        const std::int64_t needed_first = reach(p_, s, 0).first;
        const std::int64_t needed_last = reach(p_, s, s.queries - 1).last;
        for (std::int64_t key0 = keys.first; key0 < keys.last; key0 += decode_tile) {
            const std::int64_t count = std::min(decode_tile, keys.last - key0);
            if (key0 + count <= needed_first || key0 >= needed_last) continue;
            load_tile(s, kv_head, key0, count);
            for (std::int64_t r = 0; r < rows_; ++r) {
                take_tile(s, kv_head, split * rows_ + r, r, key0, count);
            }
        }
    }

    const std::byte* row(const Operand& operand, std::int64_t batch, std::int64_t head,
                         std::int64_t j) const noexcept {
        if constexpr (defect == Defect::m086_page_of_tile) {
            if (p_.page_size > 0) {
                const std::int64_t page = call_.block_table.integer(batch, j / decode_tile);
                return operand.at(page, head, j % p_.page_size);
            }
        }
        return call_.row(operand, batch, head, j);
    }

    void load_tile(const Segment& s, std::int64_t kv_head, std::int64_t key0, std::int64_t count) {
        for (std::int64_t j = 0; j < count; ++j) {
            Real* key = at_.keys + j * p_.dim_qk;
            load_row(row(call_.k, s.batch, kv_head, s.key0 + key0 + j), call_.k.format,
                     call_.k.stride[3], p_.dim_qk, key);
            at_.rope.turn_key(key0 + j, key);
            load_row(row(call_.v, s.batch, kv_head, s.key0 + key0 + j), call_.v.format,
                     call_.v.stride[3], p_.dim_v, at_.values + j * p_.dim_v);
        }
    }

    void take_tile(const Segment& s, std::int64_t kv_head, std::int64_t part, std::int64_t r,
                   std::int64_t key0, std::int64_t count) {
        const std::int64_t head = kv_head * call_.group + r / s.queries, i = r % s.queries;
        const KeyRange keys = reach(p_, s, i);
        const std::int64_t first = std::max<std::int64_t>(keys.first - key0, 0);
        const std::int64_t last = std::min(keys.last - key0, count);
        bool any = false;
        Real max = at_.max[part];
        for (std::int64_t j = first; j < last; ++j) {
            const Bias<Real> bias = bias_at<Real>(call_, s, head, i, key0 + j);
            at_.hidden[j] = bias.hidden;
            if (bias.hidden) continue;
            const Real dot =
                lane_dot(at_.queries + r * p_.dim_qk, at_.keys + j * p_.dim_qk, p_.dim_qk);
            at_.scores[j] = soft_capped(static_cast<Real>(p_.scale) * dot, p_.softcap) + bias.value;
            max = larger(at_.scores[j], max);
            any = true;
        }
        if (!any) return;
        absorb_keys(part, first, last, max, p_.dim_v, at_);
    }

    Call call_;
    const attest_problem& p_;
    DecodeBuffers<Real>& at_;
    std::int64_t splits_ = 1, rows_ = 0;
};

}  // namespace attest::kernel
