#include "reference/oracle/lanes.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/oracle/lanes_products.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attest::oracle::HWY_NAMESPACE {
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
constexpr int tile_vectors = (HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE) &&
                                     sizeof(T) == sizeof(double)
                                 ? 4
                                 : 2;

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
            sum[row][u] = p.fresh ? hn::Zero(d)
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

// What was summed in T goes to sums in double.
HWY_INLINE void add_to(V sum, bool fresh, double* out) {
    const D d;
    hn::StoreU(fresh ? sum : hn::Add(hn::LoadU(d, out), sum), d, out);
}
HWY_INLINE void add_to(hn::Vec<Tag<float>> sum, bool fresh, double* out) {
    const Tag<float> d;
    const D wide;
    const hn::Rebind<float, D> narrow;
    alignas(64) float lanes[lane_multiple];
    hn::Store(sum, d, lanes);
    for (std::size_t u = 0; u < hn::Lanes(d); u += hn::Lanes(wide))
        add_to(hn::PromoteTo(wide, hn::LoadU(narrow, lanes + u)), fresh, out + u);
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
            add_to(spread[row][u], t.fresh, t.spread + at);
            add_to(size[row][u], t.fresh, t.size + at);
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
}  // namespace attest::oracle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attest::oracle {

HWY_EXPORT(product_double);
HWY_EXPORT(product_float);
HWY_EXPORT(spread_double);
HWY_EXPORT(spread_float);

void add_product(const Product<double>& product) {
    HWY_DYNAMIC_DISPATCH(product_double)(product);
}

void add_product(const Product<float>& product) {
    HWY_DYNAMIC_DISPATCH(product_float)(product);
}

void add_spread(const Spread<double>& spread) {
    HWY_DYNAMIC_DISPATCH(spread_double)(spread);
}

void add_spread(const Spread<float>& spread) {
    HWY_DYNAMIC_DISPATCH(spread_float)(spread);
}

}  // namespace attest::oracle
#endif
