#pragma once
// CUDA's scalar intrinsics on a CPU. The fast ones (__expf) are the accurate function here: an
// emulation shows a kernel's logic, its numerics are judged on a GPU.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/simt/half.hpp"

// glibc declares functions of some of these names, so they cannot be functions of ours.
#define __expf(x) (::std::exp(static_cast<float>(x)))
#define __logf(x) (::std::log(static_cast<float>(x)))
#define __log2f(x) (::std::log2(static_cast<float>(x)))
#define __exp10f(x) (::std::pow(10.0f, static_cast<float>(x)))
#define __powf(x, y) (::std::pow(static_cast<float>(x), static_cast<float>(y)))
#define __sinf(x) (::std::sin(static_cast<float>(x)))
#define __cosf(x) (::std::cos(static_cast<float>(x)))

// CUDA's overloads: of a signed and an unsigned number, too, and NaN loses against any number.
template <typename A, typename B>
    requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
constexpr std::common_type_t<A, B> max(A a, B b) {
    const std::common_type_t<A, B> x = a, y = b;
    return x < y || x != x ? y : x;
}
template <typename A, typename B>
    requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B>
constexpr std::common_type_t<A, B> min(A a, B b) {
    const std::common_type_t<A, B> x = a, y = b;
    return y < x || x != x ? y : x;
}

inline float rsqrtf(float x) {
    return 1.0f / std::sqrt(x);
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
    return std::sqrt(x);
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fmaf_rn(float a, float b, float c) {
    return std::fma(a, b, c);
}
inline float __saturatef(float x) {
    return x < 0.0f || x != x ? 0.0f : x > 1.0f ? 1.0f : x;
}
inline int __float2int_rn(float x) {
    return static_cast<int>(std::nearbyint(x));
}
inline int __float2int_rd(float x) {
    return static_cast<int>(std::floor(x));
}
inline unsigned __float_as_uint(float x) {
    return simt::float_bits(x);
}
inline int __float_as_int(float x) {
    return static_cast<int>(simt::float_bits(x));
}
inline float __uint_as_float(unsigned x) {
    return simt::bits_float(x);
}
inline float __int_as_float(int x) {
    return simt::bits_float(static_cast<unsigned>(x));
}
inline int __popc(unsigned x) {
    return std::popcount(x);
}
inline int __clz(int x) {
    return std::countl_zero(static_cast<unsigned>(x));
}
inline int __ffs(int x) {
    return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
// Hints for caches, of which there are none.
template <typename T>
inline T __ldg(const T* p) {
    return *p;
}
template <typename T>
inline T __ldca(const T* p) {
    return *p;
}
template <typename T>
inline T __ldcg(const T* p) {
    return *p;
}
template <typename T>
inline T __ldcs(const T* p) {
    return *p;
}
template <typename T>
inline void __stcg(T* p, std::type_identity_t<T> value) {
    *p = value;
}
template <typename T>
inline void __stcs(T* p, std::type_identity_t<T> value) {
    *p = value;
}
template <typename T>
inline void __stwt(T* p, std::type_identity_t<T> value) {
    *p = value;
}
