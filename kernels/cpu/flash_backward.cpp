// The backward pass of cpu_flash: weights are recomputed from the stored log-sum-exp, a tile of 64
// keys at a time against every query of the group, so that dK and dV of a tile are summed in one
// place and dQ grows from tile to tile. Keys lie across the lanes where a score or dP is computed,
// channels where something is added up.
//
// P and dS are rounded to the format of the queries before the second products; the gradient of a
// bias adds dS unrounded. Dropout multiplies P in dV and dP in dS.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/dropout.hpp"
#include "kernels/cpu/flash.hpp"
#include "kernels/cpu/gradient_store.hpp"
#include "kernels/cpu/score.hpp"
#include "kernels/cpu/supports.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/flash_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "kernels/cpu/flash_lanes.hpp"

#ifndef ATTEST_FLASH_BACKWARD
#define ATTEST_FLASH_BACKWARD
namespace attest::cpu {

/// State beside FlashBuffers: rows of queries with what they need, and the tile packed the other
/// way too.
template <typename Real>
struct BackwardTiles {
    FlashBuffers<Real> at;
    std::int64_t key_stride = 0;  ///< dim_qk, rounded up to whole vectors
    Real *queries, *d_queries;    ///< [rows, key_stride]
    Real* d_o;                    ///< [rows, value_stride]
    Real *lse, *delta;            ///< [rows]
    Real *keys, *d_keys;          ///< [flash_tile, key_stride]
    Real* values;                 ///< [dim_v, flash_tile]: transposed
    Real* d_values;               ///< [flash_tile, value_stride]
    Real *dp, *ds, *weights;      ///< [flash_tile]
    SharedSums<Real> shared;

    BackwardTiles(const attest_problem& p, Scratch& scratch)
        : at(p, scratch),
          key_stride((p.dim_qk + 15) / 16 * 16),
          queries(scratch.take<Real>(at.rows * key_stride)),
          d_queries(scratch.take<Real>(at.rows * key_stride)),
          d_o(scratch.take<Real>(at.rows * at.value_stride)),
          lse(scratch.take<Real>(at.rows)),
          delta(scratch.take<Real>(at.rows)),
          keys(scratch.take<Real>(flash_tile * key_stride)),
          d_keys(scratch.take<Real>(flash_tile * key_stride)),
          values(scratch.take<Real>(p.dim_v * flash_tile)),
          d_values(scratch.take<Real>(flash_tile * at.value_stride)),
          dp(scratch.take<Real>(flash_tile)),
          ds(scratch.take<Real>(flash_tile)),
          weights(scratch.take<Real>(flash_tile)),
          shared(p, scratch) {}
};

}  // namespace attest::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace attest::cpu::HWY_NAMESPACE {

/// to += factor * from, over whole vectors.
template <typename Real>
HWY_INLINE void add_scaled(Real factor, const Real* from, std::int64_t count, Real* to) {
    const Lanes<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto f = hn::Set(d, factor);
    for (std::int64_t c = 0; c < count; c += lanes)
        hn::Store(hn::MulAdd(f, hn::Load(d, from + c), hn::Load(d, to + c)), d, to + c);
}

/// P, dS and dX = dS cap' of one row's tile, from its dots and dP; zeros where a key is hidden.
template <typename Real>
HWY_INLINE void gradients_of_scores(const Call& call, std::uint64_t keys, std::uint64_t kept,
                                    std::int64_t count, Real lse, Real delta,
                                    BackwardTiles<Real>& t) {
    const Lanes<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const attest_problem& p = call.problem;
    const bool biased = p.mask_kind == ATTEST_MASK_ADDITIVE || p.alibi != 0;
    Real* scores = t.at.scores;
    Real* slopes = t.at.scores + flash_tile;
    const auto factor = hn::Set(d, static_cast<Real>(kept_factor(p)));
    for (std::int64_t j = 0; j < count; j += lanes) {
        auto score = hn::Mul(hn::Load(d, scores + j), hn::Set(d, static_cast<Real>(p.scale)));
        auto slope = hn::Set(d, Real{1});
        if (p.softcap != 0) {
            hn::Store(score, d, scores + j);
            for (std::int64_t n = j; n < j + lanes; ++n) {
                scores[n] = soft_capped(scores[n], p.softcap);
                const double x = static_cast<double>(scores[n]) /
                                 static_cast<double>(static_cast<Real>(p.softcap));
                slopes[n] = static_cast<Real>(1 - x * x);
            }
            score = hn::Load(d, scores + j);
            slope = hn::Load(d, slopes + j);
        }
        if (biased) score = hn::Add(score, hn::Load(d, t.at.bias + j));
        const auto mask = lane_mask(d, keys, j);
        const auto weight =
            hn::IfThenElseZero(mask, exp_or_nan(d, hn::Sub(score, hn::Set(d, lse))));
        const auto kept_mask = lane_mask(d, kept, j);
        const auto dp = hn::IfThenElseZero(kept_mask, hn::Mul(hn::Load(d, t.dp + j), factor));
        const auto apart = hn::Sub(dp, hn::Set(d, delta));
        const auto ds = hn::IfThenElseZero(mask, hn::Mul(weight, apart));
        hn::Store(hn::IfThenElseZero(kept_mask, hn::Mul(weight, factor)), d, t.weights + j);
        hn::Store(ds, d, t.ds + j);
        hn::Store(hn::Mul(ds, slope), d, scores + j);
    }
    if (call.format_q != Format::f16 && call.format_q != Format::bf16) return;
    for (std::int64_t j = 0; j < count; ++j) {
        t.weights[j] = rounded(t.weights[j], call.format_q);
        scores[j] = rounded(scores[j], call.format_q);
    }
}

template <typename Real>
HWY_INLINE void take_rows_back(const Call& call, const Segment& s, std::int64_t kv_head,
                               std::int64_t key0, std::int64_t count, BackwardTiles<Real>& t) {
    const attest_problem& p = call.problem;
    for (std::int64_t r = 0; r < call.group * s.queries; ++r) {
        const std::int64_t head = kv_head * call.group + r / s.queries, i = r % s.queries;
        const std::uint64_t visible = visible_keys(call, s, head, i, key0, count, t.at);
        if (visible == 0) continue;
        const Real* query = t.queries + r * t.key_stride;
        const Real* d_o = t.d_o + r * t.at.value_stride;
        dot_products<1>(query, p.dim_qk, t.at.keys, count, t.at.scores);
        dot_products<1>(d_o, p.dim_v, t.values, count, t.dp);
        const std::uint64_t kept = kept_keys(call, s, head, i, key0, count, visible);
        gradients_of_scores(call, visible, kept, count, t.lse[r], t.delta[r], t);
        for (std::uint64_t keys = visible; keys != 0; keys &= keys - 1) {
            const auto j = static_cast<std::int64_t>(hwy::Num0BitsBelowLS1Bit_Nonzero64(keys));
            const Real dx = t.at.scores[j];
            add_scaled(dx, t.keys + j * t.key_stride, t.key_stride, t.d_queries + r * t.key_stride);
            add_scaled(dx, query, t.key_stride, t.d_keys + j * t.key_stride);
            if ((kept >> j & 1) != 0)
                add_scaled(t.weights[j], d_o, t.at.value_stride,
                           t.d_values + j * t.at.value_stride);
            if (call.d_mask) t.shared.mask[mask_index(call, s, head, i, key0 + j)] += t.ds[j];
            if (call.d_slopes)
                t.shared.slopes[head] -= t.ds[j] * static_cast<Real>(distance_of(s, i, key0 + j));
        }
    }
}

void tile_back_f32(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
                   std::int64_t count, BackwardTiles<float>& t) {
    take_rows_back(call, s, kv_head, key0, count, t);
}
void tile_back_f64(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
                   std::int64_t count, BackwardTiles<double>& t) {
    take_rows_back(call, s, kv_head, key0, count, t);
}

}  // namespace attest::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::cpu {

HWY_EXPORT(tile_back_f32);
HWY_EXPORT(tile_back_f64);

namespace {

template <typename Real>
class FlashBackward {
public:
    FlashBackward(const Call& call, BackwardTiles<Real>& t) : call_(call), t_(t) {}

    void run() {
        t_.at.rope.fill();
        write_zeros(call_);
        t_.shared.clear(p_);
        for (std::int64_t index = 0; index < segment_count(call_); ++index) {
            const Segment s = segment_at(call_, index);
            for (std::int64_t head = 0; s.queries > 0 && head < p_.heads_kv; ++head) run(s, head);
        }
        t_.shared.store(call_);
    }

private:
    void run(const Segment& s, std::int64_t kv_head) {
        for (std::int64_t r = 0; r < call_.group * s.queries; ++r) start_row(s, kv_head, r);
        const std::int64_t first = reach(p_, s, 0).first / flash_tile * flash_tile;
        const std::int64_t last = reach(p_, s, s.queries - 1).last;
        for (std::int64_t key0 = first; key0 < last; key0 += flash_tile) {
            const std::int64_t count = std::min(flash_tile, s.keys - key0);
            pack(s, kv_head, key0, count);
            if constexpr (sizeof(Real) == 4)
                HWY_DYNAMIC_DISPATCH(tile_back_f32)(call_, s, kv_head, key0, count, t_);
            else
                HWY_DYNAMIC_DISPATCH(tile_back_f64)(call_, s, kv_head, key0, count, t_);
            finish_tile(s, kv_head, key0, count);
        }
        for (std::int64_t r = 0; r < call_.group * s.queries; ++r) finish_row(s, kv_head, r);
    }

    void start_row(const Segment& s, std::int64_t kv_head, std::int64_t r) {
        const std::int64_t head = kv_head * call_.group + r / s.queries;
        const std::int64_t i = r % s.queries, at = s.query0 + i;
        Real* query = t_.queries + r * t_.key_stride;
        Real* d_o = t_.d_o + r * t_.at.value_stride;
        std::fill_n(query, t_.key_stride, Real{0});
        std::fill_n(d_o, t_.at.value_stride, Real{0});
        std::fill_n(t_.d_queries + r * t_.key_stride, t_.key_stride, Real{0});
        load_row(call_.q.at(s.batch, head, at), call_.q.format, call_.q.stride[3], p_.dim_qk,
                 query);
        t_.at.rope.turn_query(i + s.offset, query);
        load_row(call_.d_o.at(s.batch, head, at), call_.d_o.format, call_.d_o.stride[3], p_.dim_v,
                 d_o);
        load_row(call_.o.at(s.batch, head, at), call_.o.format, call_.o.stride[3], p_.dim_v,
                 t_.at.row);
        load_row(call_.lse.at(s.batch, head, at), call_.lse.format, 1, 1, &t_.lse[r]);
        t_.delta[r] = 0;
        for (std::int64_t c = 0; c < p_.dim_v; ++c) t_.delta[r] += d_o[c] * t_.at.row[c];
        t_.delta[r] -= lse_gradient_of<Real>(call_, s, head, i);
        if (p_.sink == 0) return;
        const Real weight = std::exp(static_cast<Real>(call_.sinks.real(head)) - t_.lse[r]);
        t_.shared.sinks[head] -= weight * t_.delta[r];
    }

    void pack(const Segment& s, std::int64_t kv_head, std::int64_t key0, std::int64_t count) {
        pack_tile(call_, s, kv_head, key0, count, t_.at);
        std::fill_n(t_.d_keys, flash_tile * t_.key_stride, Real{0});
        std::fill_n(t_.d_values, flash_tile * t_.at.value_stride, Real{0});
        std::fill_n(t_.values, p_.dim_v * flash_tile, Real{0});
        for (std::int64_t j = 0; j < count; ++j) {
            Real* key = t_.keys + j * t_.key_stride;
            std::fill_n(key, t_.key_stride, Real{0});
            for (std::int64_t c = 0; c < p_.dim_qk; ++c) key[c] = t_.at.keys[c * flash_tile + j];
            const Real* value = t_.at.values + j * t_.at.value_stride;
            for (std::int64_t c = 0; c < p_.dim_v; ++c) t_.values[c * flash_tile + j] = value[c];
        }
    }

    void finish_tile(const Segment& s, std::int64_t kv_head, std::int64_t key0,
                     std::int64_t count) {
        for (std::int64_t j = 0; j < count; ++j) {
            const std::int64_t at = s.key0 + key0 + j;
            Real* d_key = t_.d_keys + j * t_.key_stride;
            for (std::int64_t c = 0; c < p_.dim_qk; ++c) d_key[c] *= static_cast<Real>(p_.scale);
            t_.at.rope.turn_key_back(key0 + j, d_key);
            if (call_.d_k)
                store_row(call_.d_k.at(s.batch, kv_head, at), call_.d_k.format, call_.d_k.stride[3],
                          p_.dim_qk, d_key);
            if (call_.d_v)
                store_row(call_.d_v.at(s.batch, kv_head, at), call_.d_v.format, call_.d_v.stride[3],
                          p_.dim_v, t_.d_values + j * t_.at.value_stride);
        }
    }

    void finish_row(const Segment& s, std::int64_t kv_head, std::int64_t r) {
        if (!call_.d_q) return;
        const std::int64_t head = kv_head * call_.group + r / s.queries, i = r % s.queries;
        Real* d_query = t_.d_queries + r * t_.key_stride;
        for (std::int64_t c = 0; c < p_.dim_qk; ++c) d_query[c] *= static_cast<Real>(p_.scale);
        t_.at.rope.turn_query_back(i + s.offset, d_query);
        store_row(call_.d_q.at(s.batch, head, s.query0 + i), call_.d_q.format, call_.d_q.stride[3],
                  p_.dim_qk, d_query);
    }

    const Call& call_;
    const attest_problem& p_ = call_.problem;
    BackwardTiles<Real>& t_;
};

template <typename Real>
int run_backward(const Call& call, Scratch scratch, char* error, std::size_t cap) {
    BackwardTiles<Real> tiles(call.problem, scratch);
    if (!scratch.enough()) return fail(error, cap, "the workspace is smaller than asked for");
    FlashBackward<Real>(call, tiles).run();
    return 0;
}

}  // namespace

std::size_t flash_backward_workspace(const attest_problem& problem) noexcept {
    Scratch scratch;
    BackwardTiles<double> widest(problem, scratch);
    return scratch.wanted();
}

int flash_backward(const attest_call* from, char* error, std::size_t cap) {
    Call call;
    if (!read_call(from, call, error, cap)) return 1;
    if (!call.lse || !call.d_o) return fail(error, cap, "backward needs lse and d_o");
    const Scratch scratch(from->workspace, from->workspace_bytes);
    return call.wide ? run_backward<double>(call, scratch, error, cap)
                     : run_backward<float>(call, scratch, error, cap);
}

}  // namespace attest::cpu
#endif
