#pragma once
// __half and __nv_bfloat16 for a machine without the CUDA toolkit, under CUDA's names.
//
// Arithmetic is what a GPU does: the operation in f32, one rounding to nearest even at the end (a
// single f16 or bf16 sum, product or quotient of exact operands is correctly rounded that way,
// since f32 has more than 2p + 2 bits).

#include <cmath>
#include <cstdint>
#include <cstring>

namespace simt {

inline std::uint32_t float_bits(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float bits_float(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// f32 to f16 and bf16, to nearest even; NaN stays NaN. Out of line: g++ 12 merges the tails of
/// inlined truncations wrongly (see reference/problem/precision_test.cpp).
std::uint16_t half_from_float(float value);
std::uint16_t bfloat16_from_float(float value);
float half_to_float(std::uint16_t bits);
inline float bfloat16_to_float(std::uint16_t bits) {
    return bits_float(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace simt

struct __half {
    std::uint16_t x;
    __half() = default;
    __half(float value) : x(simt::half_from_float(value)) {}
    __half(double value) : x(simt::half_from_float(static_cast<float>(value))) {}
    __half(int value) : x(simt::half_from_float(static_cast<float>(value))) {}
    operator float() const { return simt::half_to_float(x); }
};

struct __nv_bfloat16 {
    std::uint16_t x;
    __nv_bfloat16() = default;
    __nv_bfloat16(float value) : x(simt::bfloat16_from_float(value)) {}
    __nv_bfloat16(double value) : x(simt::bfloat16_from_float(static_cast<float>(value))) {}
    __nv_bfloat16(int value) : x(simt::bfloat16_from_float(static_cast<float>(value))) {}
    operator float() const { return simt::bfloat16_to_float(x); }
};

using half = __half;
using nv_bfloat16 = __nv_bfloat16;

struct alignas(4) __half2 {
    __half x, y;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
using half2 = __half2;
using nv_bfloat162 = __nv_bfloat162;

namespace simt {

template <typename H>
inline H rounded(float value) {
    return H(value);
}

}  // namespace simt

inline float __half2float(__half h) {
    return h;
}
inline __half __float2half(float f) {
    return __half(f);
}
inline __half __float2half_rn(float f) {
    return __half(f);
}
inline float __bfloat162float(__nv_bfloat16 h) {
    return h;
}
inline __nv_bfloat16 __float2bfloat16(float f) {
    return __nv_bfloat16(f);
}
inline __nv_bfloat16 __float2bfloat16_rn(float f) {
    return __nv_bfloat16(f);
}
inline __half2 __floats2half2_rn(float a, float b) {
    return {__half(a), __half(b)};
}
inline __half2 __halves2half2(__half a, __half b) {
    return {a, b};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return {__nv_bfloat16(a), __nv_bfloat16(b)};
}
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return {a, b};
}
inline __half __low2half(__half2 v) {
    return v.x;
}
inline __half __high2half(__half2 v) {
    return v.y;
}

inline __half __hadd(__half a, __half b) {
    return float(a) + float(b);
}
inline __half __hsub(__half a, __half b) {
    return float(a) - float(b);
}
inline __half __hmul(__half a, __half b) {
    return float(a) * float(b);
}
inline __half __hdiv(__half a, __half b) {
    return float(a) / float(b);
}
inline __half __hmax(__half a, __half b) {
    return std::fmax(float(a), float(b));
}
inline bool __hgt(__half a, __half b) {
    return float(a) > float(b);
}
inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) {
    return float(a) + float(b);
}
inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) {
    return float(a) - float(b);
}
inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b) {
    return float(a) / float(b);
}
inline bool __hgt(__nv_bfloat16 a, __nv_bfloat16 b) {
    return float(a) > float(b);
}
inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) {
    return float(a) * float(b);
}
inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
    return std::fmax(float(a), float(b));
}
