#pragma once
// Arithmetic on pairs of 16-bit numbers under CUDA's names, as strangers' kernels write it, and
// what half.hpp lacks of one of them. Each lane is rounded once, to nearest even; of two numbers
// the larger, or the smaller, is the one that is no NaN.

#include <cmath>
#include <type_traits>

#include "kernels/simt/half.hpp"

namespace simt {

template <typename T>
concept Half = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

/// a b + c, rounded once: f64 holds the product exactly, sum and rest the sum (Knuth's TwoSum). Cut
/// off towards zero, with a last bit that says "inexact", it goes by f32 without rounding twice
/// (Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using
/// rounding to odd).
inline float fused(float a, float b, float c) {
    const double product = static_cast<double>(a) * b, sum = product + c;
    float near = static_cast<float>(sum);
    if (std::isnan(sum) || std::isinf(near)) return near;
    const double of_c = sum - product, rest = (product - (sum - of_c)) + (c - of_c);
    const double over = static_cast<double>(near) - sum;
    if (over == 0 && rest == 0) return near;
    const double beyond = over != 0 ? over : -rest;
    if (beyond * sum > 0) near = std::nextafter(near, 0.0f);
    return bits_float(float_bits(near) | 1u);
}

}  // namespace simt

template <simt::Half H>
inline H __hfma(H a, H b, H c) {
    return H(simt::fused(a, b, c));
}
template <simt::Half H>
inline H __hmin(H a, H b) {
    return H(std::fmin(float(a), float(b)));
}
template <simt::Half H>
inline H __hneg(H a) {
    return H(-float(a));
}
template <simt::Half H>
inline H __habs(H a) {
    return H(std::fabs(float(a)));
}
template <simt::Half H>
inline bool __hlt(H a, H b) {
    return float(a) < float(b);
}
template <simt::Half H>
inline bool __hle(H a, H b) {
    return float(a) <= float(b);
}
template <simt::Half H>
inline bool __hge(H a, H b) {
    return float(a) >= float(b);
}
template <simt::Half H>
inline bool __heq(H a, H b) {
    return float(a) == float(b);
}
template <simt::Half H>
inline bool __hisnan(H a) {
    return std::isnan(float(a));
}
template <simt::Half H>
inline H hexp(H a) {
    return H(std::exp(float(a)));
}
template <simt::Half H>
inline H hexp2(H a) {
    return H(std::exp2(float(a)));
}
template <simt::Half H>
inline H hlog(H a) {
    return H(std::log(float(a)));
}
template <simt::Half H>
inline H hsqrt(H a) {
    return H(std::sqrt(float(a)));
}
template <simt::Half H>
inline H hrcp(H a) {
    return H(1 / float(a));
}
template <simt::Half H>
inline H& operator+=(H& a, std::type_identity_t<H> b) {
    return a = H(float(a) + float(b));
}
template <simt::Half H>
inline H& operator-=(H& a, std::type_identity_t<H> b) {
    return a = H(float(a) - float(b));
}
template <simt::Half H>
inline H& operator*=(H& a, std::type_identity_t<H> b) {
    return a = H(float(a) * float(b));
}
template <simt::Half H>
inline H& operator/=(H& a, std::type_identity_t<H> b) {
    return a = H(float(a) / float(b));
}
