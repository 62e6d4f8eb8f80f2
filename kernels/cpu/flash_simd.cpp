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
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attest::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Real>
using Lanes = hn::CappedTag<Real, 64 / sizeof(Real)>;

/// Highway's Exp answers 0 for a NaN; a NaN score must stay one. Below -1100 the answer is 0 in
/// either format; Exp is not asked there, nor for a NaN, because it turns its argument into an int.
template <class D, class V>
HWY_INLINE V exp_or_nan(D d, V x) {
    const auto lost = hn::IsNaN(x);
    const auto asked = hn::Max(hn::IfThenZeroElse(lost, x), hn::Set(d, -1100));
    return hn::IfThenElse(lost, x, hn::Exp(d, asked));
}

/// Round to nearest even into the queries' format, for weights in [0, 1]: on the bits where the
/// result is normal; for f16 below 2^-14 by adding 3/4, whose ulp is the subnormal step 2^-24.
template <class D, class V>
HWY_INLINE V rounded_weights(D d, V weight, Format format) {
    if (format == Format::f64 || format == Format::f32) return weight;
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, weight);
    const auto one = hn::Set(du, 1);
    if (format == Format::bf16) {
        const auto odd = hn::And(hn::ShiftRight<16>(bits), one);
        const auto sum = hn::Add(bits, hn::Add(hn::Set(du, 0x7fff), odd));
        const auto near = hn::BitCast(d, hn::And(sum, hn::Set(du, 0xffff0000u)));
        return hn::IfThenElse(hn::IsNaN(weight), weight, near);
    }
    const auto odd = hn::And(hn::ShiftRight<13>(bits), one);
    const auto sum = hn::Add(bits, hn::Add(hn::Set(du, 0xfff), odd));
    const auto normal = hn::BitCast(d, hn::And(sum, hn::Set(du, 0xffffe000u)));
    const auto shift = hn::Set(d, 0.75f);
    const auto tiny = hn::Sub(hn::Add(weight, shift), shift);
    const auto near = hn::IfThenElse(hn::Lt(weight, hn::Set(d, 0x1p-14f)), tiny, normal);
    return hn::IfThenElse(hn::IsNaN(weight), weight, near);
}

/// Dot products of `rows` queries (1 or 2) with the tile's keys: four vectors of keys at a time.
template <int rows, typename Real>
HWY_INLINE void dot_products(const Real* query, std::int64_t dim, const Real* keys,
                             std::int64_t count, Real* scores) {
    const Lanes<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto zero = hn::Zero(d);
    std::int64_t j = 0;
    for (; j + 3 * lanes < count; j += 4 * lanes) {
        auto a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
        for (std::int64_t c = 0; c < dim; ++c) {
            const Real* key = keys + c * flash_tile + j;
            const auto k0 = hn::Load(d, key), k1 = hn::Load(d, key + lanes);
            const auto k2 = hn::Load(d, key + 2 * lanes), k3 = hn::Load(d, key + 3 * lanes);
            const auto a = hn::Set(d, query[c]);
            a0 = hn::MulAdd(a, k0, a0), a1 = hn::MulAdd(a, k1, a1);
            a2 = hn::MulAdd(a, k2, a2), a3 = hn::MulAdd(a, k3, a3);
            if constexpr (rows == 2) {
                const auto b = hn::Set(d, query[dim + c]);
                b0 = hn::MulAdd(b, k0, b0), b1 = hn::MulAdd(b, k1, b1);
                b2 = hn::MulAdd(b, k2, b2), b3 = hn::MulAdd(b, k3, b3);
            }
        }
        hn::Store(a0, d, scores + j), hn::Store(a1, d, scores + j + lanes);
        hn::Store(a2, d, scores + j + 2 * lanes), hn::Store(a3, d, scores + j + 3 * lanes);
        if constexpr (rows == 2) {
            Real* next = scores + flash_tile;
            hn::Store(b0, d, next + j), hn::Store(b1, d, next + j + lanes);
            hn::Store(b2, d, next + j + 2 * lanes), hn::Store(b3, d, next + j + 3 * lanes);
        }
    }
    for (; j < count; j += lanes) {
        auto a = zero, b = zero;
        for (std::int64_t c = 0; c < dim; ++c) {
            const auto key = hn::Load(d, keys + c * flash_tile + j);
            a = hn::MulAdd(hn::Set(d, query[c]), key, a);
            if constexpr (rows == 2) b = hn::MulAdd(hn::Set(d, query[dim + c]), key, b);
        }
        hn::Store(a, d, scores + j);
        if constexpr (rows == 2) hn::Store(b, d, scores + flash_tile + j);
    }
}

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

template <class D>
HWY_INLINE auto lane_mask(D d, std::uint64_t keys, std::int64_t j) {
    const std::uint64_t bits = keys >> j;
    std::uint8_t bytes[8];
    hwy::CopyBytes<8>(&bits, bytes);
    return hn::LoadMaskBits(d, bytes);
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
