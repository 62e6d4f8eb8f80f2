#include "reference/oracle/lanes.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/oracle/lanes_double.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attest::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, lane_multiple>;
using V = hn::Vec<D>;

// Four vectors of keys at a time hide the latency of the additions.
template <int vectors>
void dots_block(const TransposedKeys& keys, const double* q, std::int64_t j, double* dot,
                double* size) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V sum[vectors], total[vectors];
    for (int u = 0; u < vectors; ++u) sum[u] = total[u] = hn::Zero(d);
    for (std::int64_t c = 0; c < keys.dim; ++c) {
        const V x = hn::Set(d, q[c]), ax = hn::Abs(x);
        const double* row = keys.hi + c * keys.stride + j;
        for (int u = 0; u < vectors; ++u) {
            const V y = hn::LoadU(d, row + u * lanes);
            sum[u] = hn::MulAdd(x, y, sum[u]);
            total[u] = hn::MulAdd(ax, hn::Abs(y), total[u]);
        }
    }
    for (int u = 0; u < vectors; ++u) {
        hn::StoreU(sum[u], d, dot + j + u * lanes);
        if (size != nullptr) hn::StoreU(total[u], d, size + j + u * lanes);
    }
}

void dots_all(const TransposedKeys& keys, const double* q, std::int64_t first, std::int64_t last,
              double* dot, double* size) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    std::int64_t j = first;
    for (; j + 4 * lanes <= last; j += 4 * lanes) dots_block<4>(keys, q, j, dot, size);
    for (; j < last; j += lanes) dots_block<1>(keys, q, j, dot, size);
}

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
    V sum = hn::Zero(d);
    for (std::int64_t j = 0; j < n; j += lanes) {
        const V e = exp_of(d, hn::Sub(hn::LoadU(d, x + j), top));
        hn::StoreU(e, d, w + j);
        sum = hn::Add(sum, e);
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <int vectors>
void combine_block(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
                   const double* w, double* out) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V sum[vectors];
    for (int u = 0; u < vectors; ++u) sum[u] = hn::Zero(d);
    for (std::size_t j = 0; j < visible.size(); ++j) {
        const V weight = hn::Set(d, w[j]);
        const double* row = values + visible[j] * stride;
        for (int u = 0; u < vectors; ++u)
            sum[u] = hn::MulAdd(weight, hn::LoadU(d, row + u * lanes), sum[u]);
    }
    for (int u = 0; u < vectors; ++u) hn::StoreU(sum[u], d, out + u * lanes);
}

void combine_all(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
                 const double* w, double* out) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    std::int64_t c = 0;
    for (; c + 8 * lanes <= stride; c += 8 * lanes)
        combine_block<8>(values + c, stride, visible, w, out + c);
    for (; c + 2 * lanes <= stride; c += 2 * lanes)
        combine_block<2>(values + c, stride, visible, w, out + c);
    for (; c < stride; c += lanes) combine_block<1>(values + c, stride, visible, w, out + c);
}

template <int vectors, bool hull>
void columns_block(const ColumnTask& t, std::int64_t c, const ColumnSumsOut& out) {
    const D d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const double infinite = std::numeric_limits<double>::infinity();
    V centre[vectors], spread[vectors], plain[vectors], mass[vectors], low[vectors], high[vectors];
    for (int u = 0; u < vectors; ++u) {
        centre[u] = hn::LoadU(d, t.centre + c + u * lanes);
        spread[u] = plain[u] = mass[u] = hn::Zero(d);
        low[u] = hn::Set(d, hull ? infinite : -infinite);
        high[u] = hn::Set(d, hull ? -infinite : infinite);
    }
    for (std::size_t j = 0; j < t.visible.size(); ++j) {
        const double* row = t.values + t.visible[j] * t.stride + c;
        const V a = hn::Set(d, t.centred[j]), k = hn::Set(d, t.plain[j]);
        const V p = hn::Set(d, t.weight[j]);
        for (int u = 0; u < vectors; ++u) {
            const V v = hn::LoadU(d, row + u * lanes), size = hn::Abs(v);
            spread[u] = hn::MulAdd(a, hn::Abs(hn::Sub(v, centre[u])), spread[u]);
            plain[u] = hn::MulAdd(k, size, plain[u]);
            mass[u] = hn::MulAdd(p, size, mass[u]);
            if constexpr (hull) {
                low[u] = hn::Min(low[u], v);
                high[u] = hn::Max(high[u], v);
            }
        }
    }
    for (int u = 0; u < vectors; ++u) {
        const std::int64_t at = c + u * lanes;
        hn::StoreU(spread[u], d, out.spread + at);
        hn::StoreU(plain[u], d, out.plain + at);
        hn::StoreU(mass[u], d, out.mass + at);
        hn::StoreU(low[u], d, out.low + at);
        hn::StoreU(high[u], d, out.high + at);
    }
}

template <bool hull>
void columns_in_blocks(const ColumnTask& task, const ColumnSumsOut& out) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(D()));
    std::int64_t c = 0;
    for (; c + 2 * lanes <= task.stride; c += 2 * lanes) columns_block<2, hull>(task, c, out);
    for (; c < task.stride; c += lanes) columns_block<1, hull>(task, c, out);
}

void columns_all(const ColumnTask& task, const ColumnSumsOut& out) {
    if (task.hull) return columns_in_blocks<true>(task, out);
    columns_in_blocks<false>(task, out);
}

}  // namespace
}  // namespace attest::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest {

HWY_EXPORT(dots_all);
HWY_EXPORT(exponentials_all);
HWY_EXPORT(combine_all);
HWY_EXPORT(columns_all);

void dots(const TransposedKeys& keys, const double* q, std::int64_t first, std::int64_t last,
          double* dot, double* size) {
    HWY_DYNAMIC_DISPATCH(dots_all)(keys, q, first, last, dot, size);
}

double exponentials(const double* x, double max, std::int64_t n, double* w) {
    return HWY_DYNAMIC_DISPATCH(exponentials_all)(x, max, n, w);
}

void combine(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
             const double* w, double* out) {
    HWY_DYNAMIC_DISPATCH(combine_all)(values, stride, visible, w, out);
}

void column_sums(const ColumnTask& task, const ColumnSumsOut& out) {
    HWY_DYNAMIC_DISPATCH(columns_all)(task, out);
}

}  // namespace attest
#endif
