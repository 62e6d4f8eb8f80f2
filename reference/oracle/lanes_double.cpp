#include "reference/oracle/lanes.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/oracle/lanes_double.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attest::oracle::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;

// exp(x) = 2^k exp(r), |r| <= log(2)/2; k log2_high is exact (log2_high has 32 bits, k 11). The
// Taylor polynomial of degree 13 leaves 4e-18; its roundings and that of r are below 1.5 units of
// the result, which is at least 0.7.
V exp_of(const D d, V x) {
    constexpr int terms = 12;  // 1/13!, ..., 1/2!
    constexpr double coefficients[terms] = {
        1 / 6227020800.0, 1 / 479001600.0, 1 / 39916800.0, 1 / 3628800.0, 1 / 362880.0, 1 / 40320.0,
        1 / 5040.0,       1 / 720.0,       1 / 120.0,      1 / 24.0,      1 / 6.0,      1 / 2.0};
    // log(2) in two parts, the first of 32 bits (fdlibm, e_exp.c).
    constexpr double log2_high = 0x1.62e42feep-1, log2_low = 0x1.a39ef35793c76p-33;
    const V floor = hn::Set(d, -708.0), shift = hn::Set(d, 0x1.8p52);
    const V clamped = hn::Max(x, floor);
    const V biased = hn::MulAdd(clamped, hn::Set(d, 1.4426950408889634), shift);
    const V k = hn::Sub(biased, shift);
    V r = hn::NegMulAdd(k, hn::Set(d, log2_high), clamped);
    r = hn::NegMulAdd(k, hn::Set(d, log2_low), r);
    V p = hn::Set(d, coefficients[0]);
    for (int i = 1; i < terms; ++i) p = hn::MulAdd(p, r, hn::Set(d, coefficients[i]));
    p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0));
    const hn::RebindToSigned<D> di;
    const auto bits = hn::Add(hn::BitCast(di, biased), hn::Set(di, 1023));
    const V power = hn::BitCast(d, hn::ShiftLeft<52>(bits));
    return hn::IfThenElseZero(hn::Ge(x, floor), hn::Mul(p, power));
}

double exponentials_all(const double* x, double max, std::int64_t n, double* w) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const V top = hn::Set(d, max);
    V sum = hn::Zero(d), other = hn::Zero(d);
    for (std::int64_t j = 0; j < n; j += 2 * lanes) {  // lane_multiple is twice the longest vector
        const V e = exp_of(d, hn::Sub(hn::LoadU(d, x + j), top));
        const V f = exp_of(d, hn::Sub(hn::LoadU(d, x + j + lanes), top));
        hn::StoreU(e, d, w + j);
        hn::StoreU(f, d, w + j + lanes);
        sum = hn::Add(sum, e);
        other = hn::Add(other, f);
    }
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, other)));
}

// Loops over n numbers: whole vectors, then one at a time.
using One = hn::CappedTag<double, 1>;

template <class Step>
HWY_INLINE void over(std::int64_t n, Step step) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    std::int64_t j = 0;
    for (; j + lanes <= n; j += lanes) step(D(), j);
    for (; j < n; ++j) step(One(), j);
}

double scaled_all(const double* x, double factor, std::int64_t n, double* out) {
    const D d;
    double rest = -infinite;
    V most = hn::Set(d, rest);
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
        const V y = hn::Mul(hn::LoadU(d, x + j), hn::Set(d, factor));
        hn::StoreU(y, d, out + j);
        most = hn::Max(most, y);
    }
    for (; j < n; ++j) {
        out[j] = x[j] * factor;
        rest = out[j] > rest ? out[j] : rest;
    }
    const double of_vectors = hn::GetLane(hn::MaxOfLanes(d, most));
    return of_vectors > rest ? of_vectors : rest;
}

Extent extent_of(const double* x, std::int64_t n) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const V limit = hn::Set(d, std::numeric_limits<double>::max());
    V most = hn::Zero(d), least_finite = hn::Set(d, 1.0);
    std::int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
        const V size = hn::Abs(hn::LoadU(d, x + j));
        const auto finite = hn::Le(size, limit);
        most = hn::Max(most, hn::IfThenElseZero(finite, size));
        least_finite = hn::IfThenElseZero(finite, least_finite);
    }
    Extent out{hn::GetLane(hn::MaxOfLanes(d, most)),
               hn::GetLane(hn::MinOfLanes(d, least_finite)) > 0};
    for (; j < n; ++j) {
        const double size = x[j] < 0 ? -x[j] : x[j];
        const bool finite = size <= std::numeric_limits<double>::max();
        out.finite = out.finite && finite;
        if (finite && size > out.largest) out.largest = size;
    }
    return out;
}

void narrow_all(const double* x, double factor, std::int64_t n, float* out) {
    over(n, [&](auto d, std::int64_t j) {
        const hn::Rebind<float, decltype(d)> single;
        const auto y = hn::Mul(hn::LoadU(d, x + j), hn::Set(d, factor));
        hn::StoreU(hn::DemoteTo(single, y), single, out + j);
    });
}

void narrow_sizes_all(const double* x, double factor, std::int64_t n, float* out) {
    over(n, [&](auto d, std::int64_t j) {
        const hn::Rebind<float, decltype(d)> single;
        const auto y = hn::Mul(hn::Abs(hn::LoadU(d, x + j)), hn::Set(d, factor));
        hn::StoreU(hn::DemoteTo(single, y), single, out + j);
    });
}

void widen_all(const float* x, double factor, double least, std::int64_t n, double* out) {
    over(n, [&](auto d, std::int64_t j) {
        const hn::Rebind<float, decltype(d)> single;
        const auto y = hn::PromoteTo(d, hn::LoadU(single, x + j));
        const auto a = hn::Add(hn::Mul(y, hn::Set(d, factor)), hn::Set(d, least));
        const auto number = hn::Ge(a, hn::Zero(d));
        hn::StoreU(hn::IfThenElse(number, a, hn::Set(d, infinite)), d, out + j);
    });
}

}  // namespace
}  // namespace attest::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::oracle {

HWY_EXPORT(scaled_all);
HWY_EXPORT(extent_of);
HWY_EXPORT(narrow_all);
HWY_EXPORT(narrow_sizes_all);
HWY_EXPORT(widen_all);
HWY_EXPORT(exponentials_all);

std::int64_t compiled_targets() {
    return HWY_TARGETS;
}

double scaled(const double* x, double factor, std::int64_t n, double* out) {
    return HWY_DYNAMIC_DISPATCH(scaled_all)(x, factor, n, out);
}

Extent extent(const double* x, std::int64_t n) {
    return HWY_DYNAMIC_DISPATCH(extent_of)(x, n);
}

void narrow(const double* x, double factor, std::int64_t n, float* out) {
    HWY_DYNAMIC_DISPATCH(narrow_all)(x, factor, n, out);
}

void narrow_sizes(const double* x, double factor, std::int64_t n, float* out) {
    HWY_DYNAMIC_DISPATCH(narrow_sizes_all)(x, factor, n, out);
}

void widen_upward(const float* x, double factor, double least, std::int64_t n, double* out) {
    HWY_DYNAMIC_DISPATCH(widen_all)(x, factor, least, n, out);
}

double exponentials(const double* x, double max, std::int64_t n, double* w) {
    return HWY_DYNAMIC_DISPATCH(exponentials_all)(x, max, n, w);
}

}  // namespace attest::oracle
#endif
