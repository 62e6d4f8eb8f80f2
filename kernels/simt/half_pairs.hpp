#pragma once
// From and to pairs of 16-bit numbers, under CUDA's names.

#include "kernels/simt/half2.hpp"
#include "kernels/simt/types.hpp"

template <simt::HalfPair P>
inline float __low2float(P a) {
    return a.x;
}
template <simt::HalfPair P>
inline float __high2float(P a) {
    return a.y;
}
inline float2 __half22float2(__half2 a) {
    return {a.x, a.y};
}
inline __half2 __float22half2_rn(float2 a) {
    return __floats2half2_rn(a.x, a.y);
}
inline __half2 __half2half2(__half a) {
    return {a, a};
}
inline __half2 __float2half2_rn(float a) {
    return {__half(a), __half(a)};
}
inline __half2 make_half2(__half a, __half b) {
    return {a, b};
}
inline __half2 __lows2half2(__half2 a, __half2 b) {
    return {a.x, b.x};
}
inline __half2 __highs2half2(__half2 a, __half2 b) {
    return {a.y, b.y};
}
inline __half2 __lowhigh2highlow(__half2 a) {
    return {a.y, a.x};
}
inline __half2 __low2half2(__half2 a) {
    return {a.x, a.x};
}
inline __half2 __high2half2(__half2 a) {
    return {a.y, a.y};
}
inline unsigned short __half_as_ushort(__half a) {
    return a.x;
}
inline __half __ushort_as_half(unsigned short bits) {
    __half a;
    a.x = bits;
    return a;
}
inline float2 __bfloat1622float2(__nv_bfloat162 a) {
    return {a.x, a.y};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 a) {
    return __floats2bfloat162_rn(a.x, a.y);
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) {
    return {a, a};
}
inline __nv_bfloat162 __float2bfloat162_rn(float a) {
    return {__nv_bfloat16(a), __nv_bfloat16(a)};
}
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) {
    return a.x;
}
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) {
    return a.y;
}
