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
using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;

template <typename T>
using Tag = hn::CappedTag<T, lane_multiple>;

// Registers: rows x vectors of sums, the vectors of b, one of a. 32 where masks are registers of
// their own (AVX-512, SVE), 16 elsewhere.
constexpr int tile_rows = 4;
template <typename T>
constexpr int tile_vectors =
    (HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE) && sizeof(T) == sizeof(double) ? 4 : 2;

template <typename T, int rows, int vectors>
HWY_INLINE void product_tile(const Product<T>& p, std::int64_t r, std::int64_t x) {
    const Tag<T> d;
    using W = hn::Vec<Tag<T>>;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    W sum[rows][vectors];
    const T* a[rows];
    for (int row = 0; row < rows; ++row) {
        a[row] = p.a + (r + row) * p.a_stride;
        for (int u = 0; u < vectors; ++u)
            sum[row][u] = p.fresh
                              ? hn::Zero(d)
                              : hn::LoadU(d, p.out + (r + row) * p.out_stride + x + u * lanes);
    }
    const T* b = p.b + x;
    for (std::int64_t i = 0; i < p.inner; ++i, b += p.b_stride) {
        W y[vectors];
        for (int u = 0; u < vectors; ++u) y[u] = hn::LoadU(d, b + u * lanes);
        for (int row = 0; row < rows; ++row) {
            const W factor = hn::Set(d, a[row][i]);
            for (int u = 0; u < vectors; ++u) sum[row][u] = hn::MulAdd(factor, y[u], sum[row][u]);
        }
    }
    for (int row = 0; row < rows; ++row)
        for (int u = 0; u < vectors; ++u)
            hn::StoreU(sum[row][u], d, p.out + (r + row) * p.out_stride + x + u * lanes);
}

template <typename T, int rows>
void product_rows(const Product<T>& p, std::int64_t r) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Tag<T>()));
    std::int64_t x = 0;
    for (; x + tile_vectors<T> * lanes <= p.width; x += tile_vectors<T> * lanes)
        product_tile<T, rows, tile_vectors<T>>(p, r, x);
    for (; x < p.width; x += lanes) product_tile<T, rows, 1>(p, r, x);
}

template <typename T>
HWY_INLINE void product_of(const Product<T>& p) {
    std::int64_t r = 0;
    for (; r + tile_rows <= p.rows; r += tile_rows) product_rows<T, tile_rows>(p, r);
    for (; r < p.rows; ++r) product_rows<T, 1>(p, r);
}
void product_double(const Product<double>& p) {
    product_of(p);
}
void product_float(const Product<float>& p) {
    product_of(p);
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
    double rest = -std::numeric_limits<double>::infinity();
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
        const auto infinite = hn::Set(d, std::numeric_limits<double>::infinity());
        hn::StoreU(hn::IfThenElse(number, a, infinite), d, out + j);
    });
}

// What was summed in T goes to sums in double.
HWY_INLINE void add_to(V sum, double* out) {
    const D d;
    hn::StoreU(hn::Add(hn::LoadU(d, out), sum), d, out);
}
HWY_INLINE void add_to(hn::Vec<Tag<float>> sum, double* out) {
    const Tag<float> d;
    const D wide;
    const hn::Rebind<float, D> narrow;
    alignas(64) float lanes[lane_multiple];
    hn::Store(sum, d, lanes);
    for (std::size_t u = 0; u < hn::Lanes(d); u += hn::Lanes(wide))
        add_to(hn::PromoteTo(wide, hn::LoadU(narrow, lanes + u)), out + u);
}

template <typename T, int rows, int vectors>
HWY_INLINE void spread_tile(const Spread<T>& t, std::int64_t r, std::int64_t c) {
    const Tag<T> d;
    using W = hn::Vec<Tag<T>>;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    W centre[rows][vectors], spread[rows][vectors], size[rows][vectors];
    const T *centred[rows], *plain[rows];
    for (int row = 0; row < rows; ++row) {
        centred[row] = t.centred + (r + row) * t.weight_stride;
        plain[row] = t.plain + (r + row) * t.weight_stride;
        for (int u = 0; u < vectors; ++u) {
            centre[row][u] = hn::LoadU(d, t.centre + (r + row) * t.stride + c + u * lanes);
            spread[row][u] = size[row][u] = hn::Zero(d);
        }
    }
    const T* values = t.values + c;
    for (std::int64_t j = 0; j < t.keys; ++j, values += t.stride) {
        W v[vectors], magnitude[vectors];
        for (int u = 0; u < vectors; ++u) {
            v[u] = hn::LoadU(d, values + u * lanes);
            magnitude[u] = hn::Abs(v[u]);
        }
        for (int row = 0; row < rows; ++row) {
            const W a = hn::Set(d, centred[row][j]), k = hn::Set(d, plain[row][j]);
            for (int u = 0; u < vectors; ++u) {
                const W distance = hn::Abs(hn::Sub(v[u], centre[row][u]));
                spread[row][u] = hn::MulAdd(a, distance, spread[row][u]);
                size[row][u] = hn::MulAdd(k, magnitude[u], size[row][u]);
            }
        }
    }
    for (int row = 0; row < rows; ++row)
        for (int u = 0; u < vectors; ++u) {
            const std::int64_t at = (r + row) * t.stride + c + u * lanes;
            add_to(spread[row][u], t.spread + at);
            add_to(size[row][u], t.size + at);
        }
}

template <typename T, int rows>
void spread_rows(const Spread<T>& t, std::int64_t r) {
    constexpr int vectors = HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE ? 2 : 1;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Tag<T>()));
    std::int64_t c = 0;
    for (; c + vectors * lanes <= t.stride; c += vectors * lanes)
        spread_tile<T, rows, vectors>(t, r, c);
    for (; c < t.stride; c += lanes) spread_tile<T, rows, 1>(t, r, c);
}

template <typename T>
HWY_INLINE void spread_of(const Spread<T>& t) {
    std::int64_t r = 0;
    for (; r + tile_rows <= t.rows; r += tile_rows) spread_rows<T, tile_rows>(t, r);
    for (; r < t.rows; ++r) spread_rows<T, 1>(t, r);
}
void spread_double(const Spread<double>& t) {
    spread_of(t);
}
void spread_float(const Spread<float>& t) {
    spread_of(t);
}

}  // namespace
}  // namespace attest::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest {

HWY_EXPORT(product_double);
HWY_EXPORT(product_float);
HWY_EXPORT(scaled_all);
HWY_EXPORT(extent_of);
HWY_EXPORT(narrow_all);
HWY_EXPORT(narrow_sizes_all);
HWY_EXPORT(widen_all);
HWY_EXPORT(exponentials_all);
HWY_EXPORT(spread_double);
HWY_EXPORT(spread_float);

std::int64_t compiled_targets() {
    return HWY_TARGETS;
}

void add_product(const Product<double>& product) {
    HWY_DYNAMIC_DISPATCH(product_double)(product);
}

void add_product(const Product<float>& product) {
    HWY_DYNAMIC_DISPATCH(product_float)(product);
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

void add_spread(const Spread<double>& spread) {
    HWY_DYNAMIC_DISPATCH(spread_double)(spread);
}

void add_spread(const Spread<float>& spread) {
    HWY_DYNAMIC_DISPATCH(spread_float)(spread);
}

}  // namespace attest
#endif
