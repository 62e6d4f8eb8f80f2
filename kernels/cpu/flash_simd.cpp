// The inner loops of cpu_flash, compiled once for every instruction set Highway knows and chosen
// when the program runs. Keys lie across the lanes: a score is one lane's chain of d fused
// products, so it does not depend on the number of lanes; the sum of a tile's weights does, in its
// order alone.

#include <cmath>

#include "kernels/cpu/flash.hpp"
#include "kernels/cpu/score.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/flash_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "kernels/cpu/flash_lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace attest::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// acc = acc * rescale + sum over the visible keys of weight * value, a stripe of vectors at a
/// time.
template <int vectors, typename Real>
HWY_INLINE void add_values(std::uint64_t keys, const Real* weights, const Real* values,
                           std::int64_t value_stride, Real rescale, Real* output) {
    const Lanes<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto factor = hn::Set(d, rescale);
    auto a0 = hn::Mul(hn::Load(d, output), factor), a1 = a0, a2 = a0, a3 = a0;
    if constexpr (vectors == 4) {
        a1 = hn::Mul(hn::Load(d, output + lanes), factor);
        a2 = hn::Mul(hn::Load(d, output + 2 * lanes), factor);
        a3 = hn::Mul(hn::Load(d, output + 3 * lanes), factor);
    }
    for (; keys != 0; keys &= keys - 1) {
        const auto j = static_cast<std::int64_t>(hwy::Num0BitsBelowLS1Bit_Nonzero64(keys));
        const auto weight = hn::Set(d, weights[j]);
        const Real* value = values + j * value_stride;
        a0 = hn::MulAdd(weight, hn::Load(d, value), a0);
        if constexpr (vectors == 4) {
            a1 = hn::MulAdd(weight, hn::Load(d, value + lanes), a1);
            a2 = hn::MulAdd(weight, hn::Load(d, value + 2 * lanes), a2);
            a3 = hn::MulAdd(weight, hn::Load(d, value + 3 * lanes), a3);
        }
    }
    hn::Store(a0, d, output);
    if constexpr (vectors == 4) {
        hn::Store(a1, d, output + lanes);
        hn::Store(a2, d, output + 2 * lanes);
        hn::Store(a3, d, output + 3 * lanes);
    }
}

/// Dots to scores in place, hidden keys -inf; returns the largest (any number where one is NaN:
/// that key's weight will be NaN whatever is subtracted).
template <typename Real>
HWY_INLINE Real finish_scores(const Call& call, std::uint64_t keys, std::int64_t count,
                              const Real* bias, Real* scores) {
    const Lanes<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const attest_problem& p = call.problem;
    const bool biased = p.mask_kind == ATTEST_MASK_ADDITIVE || p.alibi != 0;
    const auto scale = hn::Set(d, static_cast<Real>(p.scale));
    const auto lowest = hn::Neg(hn::Inf(d));
    auto largest = lowest;
    for (std::int64_t j = 0; j < count; j += lanes) {
        auto score = hn::Mul(hn::Load(d, scores + j), scale);
        if (p.softcap != 0) {
            hn::Store(score, d, scores + j);
            for (std::int64_t n = j; n < j + lanes; ++n) {
                scores[n] = soft_capped(scores[n], p.softcap);
            }
            score = hn::Load(d, scores + j);
        }
        if (biased) score = hn::Add(score, hn::Load(d, bias + j));
        score = hn::IfThenElse(lane_mask(d, keys, j), score, lowest);
        hn::Store(score, d, scores + j);
        largest = hn::Max(largest, score);
    }
    return hn::GetLane(hn::MaxOfLanes(d, largest));
}

/// One row takes in one tile; see flash.hpp for the state.
template <typename Real>
HWY_INLINE void absorb(const Call& call, std::uint64_t keys, std::int64_t count, Real* scores,
                       std::int64_t r, FlashBuffers<Real>& at) {
    const Lanes<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const Real largest = finish_scores(call, keys, count, at.bias, scores);
    const Real max = larger(at.max[r], largest);
    const Real frame = max == hn::GetLane(hn::Neg(hn::Inf(d))) ? Real{0} : max;
    auto sum = hn::Zero(d);
    for (std::int64_t j = 0; j < count; j += lanes) {
        const auto difference = hn::Sub(hn::Load(d, scores + j), hn::Set(d, frame));
        const auto weight = hn::IfThenElseZero(lane_mask(d, keys, j), exp_or_nan(d, difference));
        sum = hn::Add(sum, weight);
        if constexpr (sizeof(Real) == 4) {
            hn::Store(rounded_weights(d, weight, call.format_q), d, scores + j);
        } else {
            hn::Store(weight, d, scores + j);
            if (call.format_q == Format::f64) continue;
            for (std::int64_t n = j; n < j + lanes; ++n) {
                scores[n] = rounded(scores[n], call.format_q);
            }
        }
    }
    // Where m did not move the factor is exp(0) = 1; scores of -inf alone leave m at -inf.
    const Real rescale = at.max[r] == frame ? Real{1} : std::exp(at.max[r] - frame);
    Real* output = at.output + r * at.value_stride;
    std::int64_t c = 0;
    for (; c + 4 * lanes <= at.value_stride; c += 4 * lanes) {
        add_values<4>(keys, scores, at.values + c, at.value_stride, rescale, output + c);
    }
    for (; c < call.problem.dim_v; c += lanes) {
        add_values<1>(keys, scores, at.values + c, at.value_stride, rescale, output + c);
    }
    at.sum[r] = at.sum[r] * rescale + hn::GetLane(hn::SumOfLanes(d, sum));
    at.max[r] = max;
    at.seen[r] = true;
}

template <typename Real>
HWY_INLINE void take_rows(const Call& call, const Segment& s, std::int64_t kv_head,
                          std::int64_t key0, std::int64_t count, FlashBuffers<Real>& at) {
    const attest_problem& p = call.problem;
    const bool bitwise_mask = p.mask_kind != ATTEST_MASK_NONE || p.alibi != 0;
    for (std::int64_t g = 0; g < call.group; ++g) {
        const std::int64_t head = kv_head * call.group + g;
        for (std::int64_t i = 0; i < s.queries;) {
            const std::uint64_t keys = visible_keys(call, s, head, i, key0, count, at);
            const std::int64_t r = g * s.queries + i++;
            if (keys == 0) continue;
            const Real* query = at.queries + r * p.dim_qk;
            // Two rows share the keys' loads; not where the one bias buffer belongs to one row.
            const std::uint64_t next = !bitwise_mask && i < s.queries
                                           ? visible_keys(call, s, head, i, key0, count, at)
                                           : 0;
            if (next == 0) {
                dot_products<1>(query, p.dim_qk, at.keys, count, at.scores);
                absorb(call, keys, count, at.scores, r, at);
                continue;
            }
            dot_products<2>(query, p.dim_qk, at.keys, count, at.scores);
            absorb(call, keys, count, at.scores, r, at);
            absorb(call, next, count, at.scores + flash_tile, r + 1, at);
            ++i;
        }
    }
}

void take_tile_f32(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
                   std::int64_t count, FlashBuffers<float>& at) {
    take_rows(call, s, kv_head, key0, count, at);
}

void take_tile_f64(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
                   std::int64_t count, FlashBuffers<double>& at) {
    take_rows(call, s, kv_head, key0, count, at);
}

template <typename Real>
HWY_INLINE void exp_all(Real* values, std::int64_t count) {
    const hn::CappedTag<Real, 1> one;
    const Lanes<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t j = 0;
    for (; j + lanes <= count; j += lanes) {
        hn::StoreU(exp_or_nan(d, hn::LoadU(d, values + j)), d, values + j);
    }
    for (; j < count; ++j) {
        hn::StoreU(exp_or_nan(one, hn::LoadU(one, values + j)), one, values + j);
    }
}

void exp_f32(float* values, std::int64_t count) {
    exp_all(values, count);
}
void exp_f64(double* values, std::int64_t count) {
    exp_all(values, count);
}

}  // namespace attest::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::cpu {

HWY_EXPORT(take_tile_f32);
HWY_EXPORT(take_tile_f64);
HWY_EXPORT(exp_f32);
HWY_EXPORT(exp_f64);

void take_tile(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
               std::int64_t count, FlashBuffers<float>& at) {
    HWY_DYNAMIC_DISPATCH(take_tile_f32)(call, s, kv_head, key0, count, at);
}

void take_tile(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
               std::int64_t count, FlashBuffers<double>& at) {
    HWY_DYNAMIC_DISPATCH(take_tile_f64)(call, s, kv_head, key0, count, at);
}

void exp_in_place(float* values, std::int64_t count) {
    HWY_DYNAMIC_DISPATCH(exp_f32)(values, count);
}

void exp_in_place(double* values, std::int64_t count) {
    HWY_DYNAMIC_DISPATCH(exp_f64)(values, count);
}

}  // namespace attest::cpu
#endif
