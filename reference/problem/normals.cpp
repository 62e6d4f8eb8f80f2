// Normal numbers, as many at a time as a vector holds. Only operations that IEEE 754 rounds
// correctly are used (no libm logarithm, no contraction), so every machine and every width draws
// the same bits.

#include "reference/problem/counter.hpp"

#include <array>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/problem/normals.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attest::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Whole = hn::CappedTag<double, 8>;
using One = hn::CappedTag<double, 1>;  // for what does not fill a vector

template <class D>
using Bits = hn::Vec<hn::RebindToUnsigned<D>>;

/// counter_mix of each.
template <class U>
HWY_INLINE hn::Vec<U> mixed(U u, hn::Vec<U> z) {
    z = hn::Mul(hn::Xor(z, hn::ShiftRight<30>(z)), hn::Set(u, counter_factors[0]));
    z = hn::Mul(hn::Xor(z, hn::ShiftRight<27>(z)), hn::Set(u, counter_factors[1]));
    return hn::Xor(z, hn::ShiftRight<31>(z));
}

/// Whole numbers below 2^52: with the exponent of 2^52 before them they are 2^52 too large.
template <class D>
HWY_INLINE hn::Vec<D> real(D d, Bits<D> whole) {
    const auto large = hn::Set(d, 0x1p52);
    return hn::Sub(hn::Or(hn::BitCast(d, whole), large), large);
}

/// ln x for x in (0, 1): x = m 2^e with m in [sqrt(1/2), sqrt(2)), then 2 atanh((m-1)/(m+1)). The
/// series' first term left out is below 2 * 0.1716^27 / 27 < 1e-22.
template <class D>
HWY_INLINE hn::Vec<D> natural_log(D d, hn::Vec<D> x) {
    const hn::RebindToUnsigned<D> u;
    const auto one = hn::Set(d, 1);
    const auto bits = hn::BitCast(u, x);
    const auto fraction = hn::And(bits, hn::Set(u, (std::uint64_t{1} << 52) - 1));
    auto m = hn::Or(hn::BitCast(d, fraction), one);
    auto exponent = hn::Sub(real(d, hn::ShiftRight<52>(bits)), hn::Set(d, 1023));
    const auto large = hn::Gt(m, hn::Set(d, 1.4142135623730951));
    m = hn::IfThenElse(large, hn::Mul(m, hn::Set(d, 0.5)), m);
    exponent = hn::IfThenElse(large, hn::Add(exponent, one), exponent);
    const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one)), square = hn::Mul(s, s);
    auto sum = hn::Zero(d);
    for (int odd = 25; odd >= 1; odd -= 2)
        sum = hn::Add(hn::Mul(sum, square), hn::Set(d, 1.0 / odd));
    return hn::Add(hn::Mul(hn::Mul(hn::Set(d, 2), s), sum),
                   hn::Mul(exponent, hn::Set(d, 0.6931471805599453)));
}

template <class D>
HWY_INLINE hn::Vec<D> polynomial(D d, const std::array<double, 8>& coefficients, hn::Vec<D> x) {
    auto sum = hn::Set(d, coefficients.back());
    for (std::size_t i = coefficients.size() - 1; i-- > 0;)
        sum = hn::Add(hn::Mul(sum, x), hn::Set(d, coefficients[i]));
    return sum;
}

constexpr std::array<double, 8> a = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                     1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                     4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                     3.3430575583588128105e+4, 2.5090809287301226727e+3},
                                b = {1.0,
                                     4.2313330701600911252e+1,
                                     6.8718700749205790830e+2,
                                     5.3941960214247511077e+3,
                                     2.1213794301586595867e+4,
                                     3.9307895800092710610e+4,
                                     2.8729085735721942674e+4,
                                     5.2264952788528545610e+3},
                                c = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                     5.76949722146069140550e0,  3.64784832476320460504e0,
                                     1.27045825245236838258e0,  2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4},
                                d_ = {1.0,
                                      2.05319162663775882187e0,
                                      1.67638483018380384940e0,
                                      6.89767334985100004550e-1,
                                      1.48103976427480074590e-1,
                                      1.51986665636164571966e-2,
                                      5.47593808499534494600e-4,
                                      1.05075007164441684324e-9},
                                e = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                     1.78482653991729133580e0,  2.96560571828504891230e-1,
                                     2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                     2.71155556874348757815e-5, 2.01033439929228813265e-7},
                                f = {1.0,
                                     5.99832206555887937690e-1,
                                     1.36929880922735805310e-1,
                                     1.48753612908506148525e-2,
                                     7.86869131145613259100e-4,
                                     1.84631831751005468180e-5,
                                     1.42151175831644588870e-7,
                                     2.04426310338993978564e-15};

template <class D>
HWY_INLINE hn::Vec<D> ratio(D d, const std::array<double, 8>& above,
                            const std::array<double, 8>& below, hn::Vec<D> x) {
    return hn::Div(polynomial(d, above, x), polynomial(d, below, x));
}

/// Beyond the middle, two in the root of -log p: up to 5 about 1.6, and from there.
template <class D>
HWY_INLINE hn::Vec<D> tail_quantile(D d, hn::Vec<D> p, hn::Vec<D> q) {
    const auto lower = hn::Lt(q, hn::Zero(d));
    const auto outside = hn::IfThenElse(lower, p, hn::Sub(hn::Set(d, 1), p));
    const auto r = hn::Sqrt(hn::Neg(natural_log(d, outside)));
    auto tail = ratio(d, c, d_, hn::Sub(r, hn::Set(d, 1.6)));
    const auto far = hn::Gt(r, hn::Set(d, 5));
    if (!hn::AllFalse(d, far))
        tail = hn::IfThenElse(far, ratio(d, e, f, hn::Sub(r, hn::Set(d, 5))), tail);
    return hn::IfThenElse(lower, hn::Neg(tail), tail);
}

/// The middle, one in 0.425^2 - q^2 = 0.180625 - q^2.
template <class D>
HWY_INLINE hn::Vec<D> middle_quantile(D d, hn::Vec<D> q) {
    const auto r = hn::Sub(hn::Set(d, 0.180625), hn::Mul(q, q));
    return hn::Div(hn::Mul(q, polynomial(d, a, r)), polynomial(d, b, r));
}
template <class D>
HWY_INLINE hn::Mask<D> is_outside(D d, hn::Vec<D> q) {
    // The middle is for |q| <= 0.425.
    return hn::Gt(hn::Abs(q), hn::Set(d, 0.425));
}

/// The quantile of the standard normal distribution: Wichura 1988, algorithm AS 241 (PPND16), about
/// 1 part in 10^16. p in (0, 1).
template <class D>
HWY_INLINE hn::Vec<D> normal_quantile(D d, hn::Vec<D> p) {
    const auto q = hn::Sub(p, hn::Set(d, 0.5)), middle = middle_quantile(d, q);
    const auto outside = is_outside(d, q);
    if (hn::AllFalse(d, outside)) return middle;
    return hn::IfThenElse(outside, tail_quantile(d, p, q), middle);
}

template <class D>
HWY_INLINE hn::Vec<D> uniforms_from(D d, std::uint64_t hashed) {
    const hn::RebindToUnsigned<D> u;
    const auto steps = hn::Mul(hn::Iota(u, 0), hn::Set(u, counter_golden));
    const auto k = hn::ShiftRight<12>(mixed(u, hn::Add(hn::Set(u, hashed), steps)));
    // (k + 1/2) 2^-52: exact, never 0 nor 1, and symmetric about 1/2.
    return hn::Mul(hn::Add(real(d, k), hn::Set(d, 0.5)), hn::Set(d, 0x1p-52));
}

constexpr std::size_t lanes_most = 8, part = 64;

/// Fewer than fill a vector: what the others hold is the middle, which costs least.
void few_normals(std::uint64_t hashed, double* out, std::size_t n) {
    const Whole d;
    const auto p = uniforms_from(d, hashed);
    double all[lanes_most];
    hn::StoreU(normal_quantile(d, hn::IfThenElse(hn::FirstN(d, n), p, hn::Set(d, 0.5))), d, all);
    for (std::size_t i = 0; i < n; ++i) out[i] = all[i];
}

/// Whole vectors, at most `part` numbers. Of eight numbers one lies beyond the middle three times
/// of four, but of all numbers only 15 %: those are set aside, and make vectors of their own.
void whole_normals(std::uint64_t hashed, double* out, std::size_t n) {
    const Whole d;
    const hn::RebindToUnsigned<Whole> u;
    const std::size_t lanes = hn::Lanes(d);
    double aside[part + lanes_most];
    std::uint64_t place[part + lanes_most];
    std::size_t count = 0;
    for (std::size_t at = 0; at < n; at += lanes) {
        const auto p = uniforms_from(d, hashed + at * counter_golden);
        const auto q = hn::Sub(p, hn::Set(d, 0.5));
        hn::StoreU(middle_quantile(d, q), d, out + at);
        const auto outside = is_outside(d, q);
        hn::CompressStore(hn::Iota(u, at), hn::RebindMask(u, outside), u, place + count);
        count += hn::CompressStore(p, outside, d, aside + count);
    }
    for (std::size_t i = count; i < count + lanes; ++i) aside[i] = 0.25;
    for (std::size_t first = 0; first < count; first += lanes) {
        const auto p = hn::LoadU(d, aside + first);
        double tail[lanes_most];
        hn::StoreU(tail_quantile(d, p, hn::Sub(p, hn::Set(d, 0.5))), d, tail);
        for (std::size_t i = 0; i < lanes && first + i < count; ++i)
            out[place[first + i]] = tail[i];
    }
}

void normals_all(std::uint64_t hashed, double* out, std::size_t n) {
    const std::size_t lanes = hn::Lanes(Whole());
    if (n == 1) return hn::StoreU(normal_quantile(One(), uniforms_from(One(), hashed)), One(), out);
    std::size_t at = 0;
    for (std::size_t whole = n / lanes * lanes; at < whole;) {
        const std::size_t now = part < whole - at ? part : whole - at;
        whole_normals(hashed + at * counter_golden, out + at, now);
        at += now;
    }
    if (at < n) few_normals(hashed + at * counter_golden, out + at, n - at);
}

}  // namespace
}  // namespace attest::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest {

HWY_EXPORT(normals_all);

void counter_normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                     std::span<double> out) noexcept {
    const std::uint64_t hashed = counter_start(seed, stream) + (first + 1) * counter_golden;
    HWY_DYNAMIC_DISPATCH(normals_all)(hashed, out.data(), out.size());
}

double counter_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
    // Who takes them one after another is handed what a few vectors held; any other index is a
    // number by itself.
    struct Held {
        std::uint64_t seed = 0, stream = 0, first = 0, last = 0;
        std::size_t count = 0;
        std::array<double, 16> number{};
    };
    thread_local Held held;
    constexpr std::uint64_t near = 4;  // some may be left out
    const bool same = held.count > 0 && held.seed == seed && held.stream == stream;
    if (!same || index - held.first >= held.count) {
        const bool follows = same && index - held.last - 1 < near;
        held.seed = seed;
        held.stream = stream;
        held.first = index;
        held.count = follows ? held.number.size() : 1;
        counter_normals(seed, stream, index, {held.number.data(), held.count});
    }
    held.last = index;
    return held.number[index - held.first];
}

}  // namespace attest
#endif
