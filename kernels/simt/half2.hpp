#pragma once
// Arithmetic on pairs of 16-bit numbers, under CUDA's names: that of one number on each.

#include "kernels/simt/half_math.hpp"

namespace simt {

template <typename T>
concept HalfPair = std::is_same_v<T, __half2> || std::is_same_v<T, __nv_bfloat162>;

}  // namespace simt

template <simt::HalfPair P>
inline P __hadd2(P a, P b) {
    return {__hadd(a.x, b.x), __hadd(a.y, b.y)};
}
template <simt::HalfPair P>
inline P __hsub2(P a, P b) {
    return {__hsub(a.x, b.x), __hsub(a.y, b.y)};
}
template <simt::HalfPair P>
inline P __hmul2(P a, P b) {
    return {__hmul(a.x, b.x), __hmul(a.y, b.y)};
}
template <simt::HalfPair P>
inline P __h2div(P a, P b) {
    return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)};
}
template <simt::HalfPair P>
inline P __hmax2(P a, P b) {
    return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
template <simt::HalfPair P>
inline P __hmin2(P a, P b) {
    return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}
template <simt::HalfPair P>
inline P __hfma2(P a, P b, P c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
template <simt::HalfPair P>
inline P __hneg2(P a) {
    return {__hneg(a.x), __hneg(a.y)};
}
template <simt::HalfPair P>
inline P __habs2(P a) {
    return {__habs(a.x), __habs(a.y)};
}
template <simt::HalfPair P>
inline P h2exp(P a) {
    return {hexp(a.x), hexp(a.y)};
}
template <simt::HalfPair P>
inline P h2exp2(P a) {
    return {hexp2(a.x), hexp2(a.y)};
}
template <simt::HalfPair P>
inline P h2rcp(P a) {
    return {hrcp(a.x), hrcp(a.y)};
}

template <simt::HalfPair P>
inline P operator+(P a, P b) {
    return __hadd2(a, b);
}
template <simt::HalfPair P>
inline P& operator+=(P& a, P b) {
    return a = __hadd2(a, b);
}
template <simt::HalfPair P>
inline P operator-(P a, P b) {
    return __hsub2(a, b);
}
template <simt::HalfPair P>
inline P& operator-=(P& a, P b) {
    return a = __hsub2(a, b);
}
template <simt::HalfPair P>
inline P operator*(P a, P b) {
    return __hmul2(a, b);
}
template <simt::HalfPair P>
inline P& operator*=(P& a, P b) {
    return a = __hmul2(a, b);
}
template <simt::HalfPair P>
inline P operator/(P a, P b) {
    return __h2div(a, b);
}
template <simt::HalfPair P>
inline P& operator/=(P& a, P b) {
    return a = __h2div(a, b);
}
template <simt::HalfPair P>
inline P operator-(P a) {
    return __hneg2(a);
}
