#pragma once
// The inner loops, vectorised by Highway and dispatched at run time to what the machine has. Lanes
// run over keys in the first product (keys lie in tiles) and over columns in the second; several
// rows share what is loaded. Rows of columns are padded to a multiple of 16, which every vector
// length here divides.
//
// Nothing here decides anything: bounds on these loops' errors are in own_error.hpp and
// head_columns.hpp, and hold for any order of summation, fused or not.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "reference/bound/rounding.hpp"
#include "reference/oracle/double_double.hpp"

namespace attest::oracle {

constexpr std::int64_t lane_multiple = 16;
constexpr std::int64_t padded(std::int64_t n) {
    return (n + lane_multiple - 1) / lane_multiple * lane_multiple;
}

/// The instruction sets these loops are compiled for: Highway's bits.
std::int64_t compiled_targets();

/// A power of two that x is below twice of, and whose inverse is a number; 1 for 0 and infinity.
inline double power_below(double x) {
    constexpr std::uint64_t exponent_field = 0x7ff0000000000000u;
    if (!(x > 0 && x <= std::numeric_limits<double>::max())) return 1;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(std::max(x, 0x1p-1000)) &
                                 exponent_field);
}

/// From S = sum |q_c| |k_jc|, taken in single precision over the power_below of both, to a_j.
///
/// Both are below 2. One is off by 2^-24 of itself or, where it is subnormal, by 2^-150; the sum of
/// d products adds chain_error(d + 1), and 2^-150 each where it is subnormal. So the true sum is at
/// most S (1 + chain_error(d + 4)) + d 2^-145. That is an upper bound, which is all that theorems
/// read a_j as; the last term is far below what they allow for the underflow of a kernel's
/// products.
class SizeUnits {
public:
    SizeUnits(std::int64_t dim, double q_max, double key_unit, double scale) {
        const double d = static_cast<double>(dim);
        const double unit = power_below(q_max) * key_unit * std::abs(scale);
        factor_ = unit * (1 + bound::chain_error(d + 4, 0x1p-24));
        least_ = unit * d * 0x1p-145;
    }
    double factor() const { return factor_; }
    double least() const { return least_; }

private:
    double factor_ = 0, least_ = 0;
};

/// Keys in tiles of 32, a tile [dim, 32]: what one step of a product reads lies side by side.
/// lo is null where keys are doubles.
constexpr std::int64_t key_tile = 32;
struct TiledKeys {
    const double* hi = nullptr;
    const double* lo = nullptr;
    std::int64_t dim = 0;

    /// Where element c of key j lies.
    static constexpr std::int64_t at(std::int64_t dim, std::int64_t j, std::int64_t c) {
        return j / key_tile * key_tile * dim + c * key_tile + j % key_tile;
    }
    static constexpr std::int64_t room(std::int64_t n) {
        return (n + key_tile - 1) / key_tile * key_tile;
    }
};

/// out[r][x] += sum_i a[r][i] b[i][x], or = where `fresh`; width a multiple of lane_multiple.
template <typename T>
struct Product {
    std::int64_t rows = 0, inner = 0, width = 0;
    const T* a = nullptr;
    std::int64_t a_stride = 0;
    const T* b = nullptr;
    std::int64_t b_stride = 0;
    T* out = nullptr;
    std::int64_t out_stride = 0;
    bool fresh = false;
};
void add_product(const Product<double>& product);
void add_product(const Product<float>& product);

/// dot[j] = scale q.k_j in double-double for first <= j < last, both multiples of key_tile; q_lo
/// may be null.
void dots(const TiledKeys& keys, const double* q, const double* q_lo, double scale,
          std::int64_t first, std::int64_t last, double* dot_hi, double* dot_lo);

/// out[j] = x[j] factor; returns the largest, -inf for n = 0. out may be x.
double scaled(const double* x, double factor, std::int64_t n, double* out);

/// The largest |x| among those that are finite, and whether all are.
struct Extent {
    double largest = 0;
    bool finite = true;
};
Extent extent(const double* x, std::int64_t n);

/// out[j] = x[j] factor, rounded to single.
void narrow(const double* x, double factor, std::int64_t n, float* out);
/// out[j] = |x[j]| factor, rounded to single.
void narrow_sizes(const double* x, double factor, std::int64_t n, float* out);
/// out[j] = x[j] factor + least; infinite where that is not a number.
void widen_upward(const float* x, double factor, double least, std::int64_t n, double* out);

/// w[j] = exp(x[j] - max), 0 below -708, for n (padded: x reads -inf beyond its end). Returns the
/// sum. Relative error of a weight at most 4 units.
double exponentials(const double* x, double max, std::int64_t n, double* w);
/// In double-double, times 2^weight_shift; 0 below -768. x hi, lo are overwritten by the weights.
constexpr int weight_shift = 200;
DoubleDouble exponentials(DoubleDouble max, std::int64_t n, double* x_hi, double* x_lo);

/// out[c] = sum_j w[j] v[visible[j]][c] in double-double, divided by `sum`, rounded to double;
/// c < stride.
void combine(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
             const double* w_hi, const double* w_lo, DoubleDouble sum, double* out);

/// spread[r][c] += (or =, where `fresh`) sum_j centred[r][j] |v[j][c] - centre[r][c]|, size[r][c]
/// += sum_j plain[r][j] |v[j][c]|: in T over the keys given, then in double.
template <typename T>
struct Spread {
    std::int64_t rows = 0, keys = 0, stride = 0;
    const T* values = nullptr;  // [keys, stride]
    const T *centred = nullptr, *plain = nullptr;
    std::int64_t weight_stride = 0;
    const T* centre = nullptr;                  // [rows, stride]
    double *spread = nullptr, *size = nullptr;  // [rows, stride]
    bool fresh = false;
};
void add_spread(const Spread<float>& spread);
void add_spread(const Spread<double>& spread);

}  // namespace attest::oracle
