#include "reference/oracle/double_double_constants.hpp"
#include "reference/oracle/lanes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/oracle/lanes_double_double.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attest::oracle::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, key_tile / 4>;
using V = hn::Vec<D>;

// Double-double in every lane; the operations are those of double_double.hpp.
struct LanePair {
    V hi, lo;
};

HWY_INLINE LanePair two_sums(V a, V b) {
    const V s = hn::Add(a, b), z = hn::Sub(s, a);
    return {s, hn::Add(hn::Sub(a, hn::Sub(s, z)), hn::Sub(b, z))};
}

HWY_INLINE LanePair fast_two_sums(V a, V b) {
    const V s = hn::Add(a, b);
    return {s, hn::Sub(b, hn::Sub(s, a))};
}

HWY_INLINE LanePair two_prods(V a, V b) {
    const V p = hn::Mul(a, b);
#if HWY_NATIVE_FMA
    return {p, hn::MulSub(a, b, p)};
#else
    const V splitter = hn::Set(D(), 134217729.0);
    const V ta = hn::Mul(splitter, a), tb = hn::Mul(splitter, b);
    const V ah = hn::Sub(ta, hn::Sub(ta, a)), bh = hn::Sub(tb, hn::Sub(tb, b));
    const V al = hn::Sub(a, ah), bl = hn::Sub(b, bh);
    V e = hn::Sub(hn::Mul(ah, bh), p);
    e = hn::Add(e, hn::Mul(ah, bl));
    e = hn::Add(e, hn::Mul(al, bh));
    return {p, hn::Add(e, hn::Mul(al, bl))};
#endif
}

HWY_INLINE LanePair add(LanePair a, LanePair b) {
    const LanePair s = two_sums(a.hi, b.hi), t = two_sums(a.lo, b.lo);
    const LanePair v = fast_two_sums(s.hi, hn::Add(s.lo, t.hi));
    return fast_two_sums(v.hi, hn::Add(v.lo, t.lo));
}

HWY_INLINE LanePair add(LanePair a, V b) {
    const LanePair s = two_sums(a.hi, b);
    return fast_two_sums(s.hi, hn::Add(s.lo, a.lo));
}

HWY_INLINE LanePair multiply(LanePair a, LanePair b) {
    const LanePair p = two_prods(a.hi, b.hi);
    const V cross = hn::Add(hn::Mul(a.hi, b.lo), hn::Mul(a.lo, b.hi));
    return fast_two_sums(p.hi, hn::Add(p.lo, cross));
}

HWY_INLINE LanePair load(const double* hi, const double* lo) {
    return {hn::LoadU(D(), hi), hn::LoadU(D(), lo)};
}

HWY_INLINE LanePair constant(DoubleDouble x) {
    return {hn::Set(D(), x.hi), hn::Set(D(), x.lo)};
}

HWY_INLINE LanePair zero() {
    return {hn::Zero(D()), hn::Zero(D())};
}

// One term of Dot2, see Sum<DoubleDouble>.
HWY_INLINE void accumulate(LanePair& sum, LanePair term) {
    const LanePair s = two_sums(sum.hi, term.hi);
    sum = {s.hi, hn::Add(sum.lo, hn::Add(s.lo, term.lo))};
}

template <int vectors, bool pairs>
void dots_block(const TiledKeys& keys, const double* q, const double* q_lo, double scale,
                std::int64_t j, double* dot_hi, double* dot_lo) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    LanePair sum[vectors];
    for (int u = 0; u < vectors; ++u) sum[u] = zero();
    std::int64_t at = TiledKeys::at(keys.dim, j, 0);
    for (std::int64_t c = 0; c < keys.dim; ++c, at += key_tile) {
        const V x = hn::Set(d, q[c]);
        for (int u = 0; u < vectors; ++u) {
            const V y = hn::LoadU(d, keys.hi + at + u * lanes);
            LanePair p = two_prods(x, y);
            if constexpr (pairs) {
                const V y_lo = hn::LoadU(d, keys.lo + at + u * lanes);
                const V cross = hn::Add(hn::Mul(x, y_lo), hn::Mul(hn::Set(d, q_lo[c]), y));
                p.lo = hn::Add(p.lo, cross);
            }
            accumulate(sum[u], p);
        }
    }
    for (int u = 0; u < vectors; ++u) {
        const LanePair s = multiply(two_sums(sum[u].hi, sum[u].lo), constant(scale));
        hn::StoreU(s.hi, d, dot_hi + j + u * lanes);
        hn::StoreU(s.lo, d, dot_lo + j + u * lanes);
    }
}

// Four vectors of keys at a time hide the latency of the additions; a tile holds a whole number of
// such steps, since no vector is longer than 8 doubles.
template <bool pairs>
void dots_in_blocks(const TiledKeys& keys, const double* q, const double* q_lo, double scale,
                    std::int64_t first, std::int64_t last, double* dot_hi, double* dot_lo) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    for (std::int64_t j = first; j < last; j += 4 * lanes)
        dots_block<4, pairs>(keys, q, q_lo, scale, j, dot_hi, dot_lo);
}

void dots_pairs(const TiledKeys& keys, const double* q, const double* q_lo, double scale,
                std::int64_t first, std::int64_t last, double* dot_hi, double* dot_lo) {
    if (q_lo != nullptr && keys.lo != nullptr)
        return dots_in_blocks<true>(keys, q, q_lo, scale, first, last, dot_hi, dot_lo);
    dots_in_blocks<false>(keys, q, q_lo, scale, first, last, dot_hi, dot_lo);
}

// As exp() of double_double.cpp, without branches: x = k log(2)/64 + r; below the floor 0.
LanePair exp_of(const DoubleDoubleConstants& table, LanePair x) {
    const D d;
    const hn::RebindToSigned<D> di;
    const V floor = hn::Set(d, -768.0);
    const auto kept = hn::Ge(x.hi, floor);
    x = {hn::IfThenElseZero(kept, x.hi), hn::IfThenElseZero(kept, x.lo)};
    const V k = hn::Round(hn::Mul(x.hi, hn::Set(d, table.steps_per_unit)));
    LanePair r = x;
    for (const double part : table.log2_step) r = add(r, hn::Neg(hn::Mul(k, hn::Set(d, part))));

    V high = hn::Set(d, table.inverse_factorial[11].hi);
    for (std::size_t n = 10; n >= 6; --n)
        high = hn::MulAdd(high, r.hi, hn::Set(d, table.inverse_factorial[n].hi));
    LanePair sum = add(multiply({high, hn::Zero(d)}, r), constant(table.inverse_factorial[5]));
    for (std::size_t n = 4; n >= 1; --n)
        sum = add(multiply(sum, r), constant(table.inverse_factorial[n]));
    sum = multiply(sum, r);

    const V whole = hn::Floor(hn::Mul(k, hn::Set(d, 1.0 / exp_table_size)));
    const V rest = hn::Sub(k, hn::Mul(whole, hn::Set(d, exp_table_size)));
    const V magic = hn::Set(d, 0x1.8p52);  // its last bits read as an integer
    const auto entry =
        hn::And(hn::BitCast(di, hn::Add(rest, magic)), hn::Set(di, exp_table_size - 1));
    const LanePair base{hn::GatherIndex(d, table.two_to_hi.data(), entry),
                        hn::GatherIndex(d, table.two_to_lo.data(), entry)};
    const LanePair y = add(base, multiply(base, sum));
    const auto exponent =
        hn::Add(hn::BitCast(di, hn::Add(whole, magic)), hn::Set(di, 1023 + weight_shift));
    const V power = hn::BitCast(d, hn::ShiftLeft<52>(exponent));
    return {hn::IfThenElseZero(kept, hn::Mul(y.hi, power)),
            hn::IfThenElseZero(kept, hn::Mul(y.lo, power))};
}

DoubleDouble exponentials_pairs(DoubleDouble max, std::int64_t n, double* x_hi, double* x_lo) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const DoubleDoubleConstants& table = double_double_constants();
    const LanePair top = constant(-max);
    LanePair sum = zero();
    for (std::int64_t j = 0; j < n; j += lanes) {
        LanePair x = load(x_hi + j, x_lo + j);
        const auto real = hn::Ge(x.hi, hn::Set(d, -1e300));  // -inf pads, and has no difference
        x = add(LanePair{hn::IfThenElse(real, x.hi, hn::Set(d, -1e300)),
                         hn::IfThenElseZero(real, x.lo)},
                top);
        const LanePair w = exp_of(table, x);
        hn::StoreU(w.hi, d, x_hi + j);
        hn::StoreU(w.lo, d, x_lo + j);
        accumulate(sum, w);
    }
    double hi[key_tile / 4], lo[key_tile / 4];
    hn::StoreU(sum.hi, d, hi);
    hn::StoreU(sum.lo, d, lo);
    DoubleDouble total;
    for (std::int64_t u = 0; u < lanes; ++u) total = total + two_sum(hi[u], lo[u]);
    return total;
}

HWY_INLINE V quotient(LanePair a, LanePair b) {
    const V q = hn::Div(a.hi, b.hi);
    const LanePair product = multiply(b, {q, hn::Zero(D())});
    const LanePair r = add(a, {hn::Neg(product.hi), hn::Neg(product.lo)});
    return hn::Add(q, hn::Div(r.hi, b.hi));
}

template <int vectors>
void combine_block(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
                   const double* w_hi, const double* w_lo, DoubleDouble sum, double* out) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    LanePair total[vectors];
    for (int u = 0; u < vectors; ++u) total[u] = zero();
    for (std::size_t j = 0; j < visible.size(); ++j) {
        const V hi = hn::Set(d, w_hi[j]), lo = hn::Set(d, w_lo[j]);
        const double* row = values + visible[j] * stride;
        for (int u = 0; u < vectors; ++u) {
            const V v = hn::LoadU(d, row + u * lanes);
            LanePair p = two_prods(hi, v);
            p.lo = hn::MulAdd(lo, v, p.lo);
            accumulate(total[u], p);
        }
    }
    for (int u = 0; u < vectors; ++u)
        hn::StoreU(quotient(two_sums(total[u].hi, total[u].lo), constant(sum)), d, out + u * lanes);
}

void combine_pairs(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
                   const double* w_hi, const double* w_lo, DoubleDouble sum, double* out) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    std::int64_t c = 0;
    for (; c + 4 * lanes <= stride; c += 4 * lanes)
        combine_block<4>(values + c, stride, visible, w_hi, w_lo, sum, out + c);
    for (; c < stride; c += lanes)
        combine_block<1>(values + c, stride, visible, w_hi, w_lo, sum, out + c);
}

}  // namespace
}  // namespace attest::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::oracle {

HWY_EXPORT(dots_pairs);
HWY_EXPORT(exponentials_pairs);
HWY_EXPORT(combine_pairs);

void dots(const TiledKeys& keys, const double* q, const double* q_lo, double scale,
          std::int64_t first, std::int64_t last, double* dot_hi, double* dot_lo) {
    HWY_DYNAMIC_DISPATCH(dots_pairs)(keys, q, q_lo, scale, first, last, dot_hi, dot_lo);
}

DoubleDouble exponentials(DoubleDouble max, std::int64_t n, double* x_hi, double* x_lo) {
    return HWY_DYNAMIC_DISPATCH(exponentials_pairs)(max, n, x_hi, x_lo);
}

void combine(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
             const double* w_hi, const double* w_lo, DoubleDouble sum, double* out) {
    HWY_DYNAMIC_DISPATCH(combine_pairs)(values, stride, visible, w_hi, w_lo, sum, out);
}

}  // namespace attest::oracle
#endif
