// What the vector loops of cpu_flash share, forward and backward; included once for every
// instruction set that Highway knows.

#if defined(ATTEST_FLASH_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEST_FLASH_LANES
#undef ATTEST_FLASH_LANES
#else
#define ATTEST_FLASH_LANES
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/flash.hpp"

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

template <class D>
HWY_INLINE auto lane_mask(D d, std::uint64_t keys, std::int64_t j) {
    const std::uint64_t bits = keys >> j;
    std::uint8_t bytes[8];
    hwy::CopyBytes<8>(&bits, bytes);
    return hn::LoadMaskBits(d, bytes);
}

}  // namespace attest::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
