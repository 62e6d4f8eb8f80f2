#pragma once
// Double-double: an unevaluated sum hi + lo of two doubles, |lo| <= ulp(hi)/2, about 106 bits.
// Portable: no fused multiply-add is assumed, and none may be contracted into this code. All of it
// is constexpr, so that a GPU's compiler takes it as it stands.
//
// Relative errors, barring underflow of the low word: two_sum and two_prod are exact; + 3 u^2,
// * 7 u^2, / 16 u^2, u = 2^-53 (Joldes, Muller, Popescu, Tight and rigorous error bounds for basic
// building blocks of double-word arithmetic, ACM TOMS 44, 2017, with the product's cross terms each
// rounded). All are below 2^-101. Products need |factor| < 2^996 (splitting multiplies by 2^27+1).

#include <cmath>
#include <type_traits>

namespace attest::oracle {

struct DoubleDouble {
    double hi = 0, lo = 0;
    constexpr DoubleDouble() = default;
    constexpr DoubleDouble(double value) : hi(value) {}
    constexpr DoubleDouble(double high, double low) : hi(high), lo(low) {}
};

/// a + b = hi + lo exactly (Knuth).
constexpr DoubleDouble two_sum(double a, double b) noexcept {
    const double s = a + b;
    const double z = s - a;
    return {s, (a - (s - z)) + (b - z)};
}

/// The same where |a| >= |b| or a = 0 (Dekker).
constexpr DoubleDouble fast_two_sum(double a, double b) noexcept {
    const double s = a + b;
    return {s, b - (s - a)};
}

/// a = hi + lo with 26 bits each (Veltkamp).
constexpr DoubleDouble split(double a) noexcept {
    const double t = 134217729.0 * a;  // 2^27 + 1
    const double hi = t - (t - a);
    return {hi, a - hi};
}

/// a b = hi + lo exactly (Dekker), from factors already split.
constexpr DoubleDouble two_prod(double a, DoubleDouble as, double b, DoubleDouble bs) noexcept {
    const double p = a * b;
    return {p, ((as.hi * bs.hi - p) + as.hi * bs.lo + as.lo * bs.hi) + as.lo * bs.lo};
}

constexpr DoubleDouble two_prod(double a, double b) noexcept {
#if defined(FP_FAST_FMA) || defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated()) {
        const double p = a * b;
        return {p, std::fma(a, b, -p)};
    }
#endif
    return two_prod(a, split(a), b, split(b));
}

constexpr DoubleDouble operator-(DoubleDouble a) noexcept {
    return {-a.hi, -a.lo};
}

constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) noexcept {
    const DoubleDouble s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
    const DoubleDouble v = fast_two_sum(s.hi, s.lo + t.hi);
    return fast_two_sum(v.hi, v.lo + t.lo);
}

constexpr DoubleDouble operator-(DoubleDouble a, DoubleDouble b) noexcept {
    return a + (-b);
}

constexpr DoubleDouble operator*(DoubleDouble a, DoubleDouble b) noexcept {
    const DoubleDouble p = two_prod(a.hi, b.hi);
    return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

constexpr DoubleDouble operator/(DoubleDouble a, DoubleDouble b) noexcept {
    const double q = a.hi / b.hi;
    const DoubleDouble r = a - b * DoubleDouble(q);
    const double q2 = r.hi / b.hi;
    const DoubleDouble r2 = r - b * DoubleDouble(q2);
    const DoubleDouble s = fast_two_sum(q, q2);
    return s + DoubleDouble(r2.hi / b.hi);
}

constexpr bool operator<(DoubleDouble a, DoubleDouble b) noexcept {
    return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}

/// The functions below have errors under 2^-97: relative for exp (flushed to 0 below -630, where
/// the low word would be subnormal; the argument must be below 700), absolute for tanh, sin and
/// cos (|argument| < 2^32), and 2^-97 (1 + |log x|) for log. The error is measured against 50
/// digits in the test.
DoubleDouble exp(DoubleDouble x) noexcept;
DoubleDouble log(DoubleDouble x) noexcept;
DoubleDouble tanh(DoubleDouble x) noexcept;
struct SineCosine {
    DoubleDouble sine, cosine;
};
SineCosine sine_cosine(DoubleDouble x) noexcept;

}  // namespace attest::oracle
