#pragma once
// The inner loops, vectorised by Highway and dispatched at run time to what the machine has. Lanes
// run over keys in the first product (keys are transposed) and over columns in the second. Buffers
// are padded to a multiple of 8 doubles, which every vector length here divides.
//
// Nothing here decides anything: bounds on these loops' errors are in own_error.hpp, and hold for
// any order of summation, fused or not.

#include <cstdint>
#include <span>

#include "reference/oracle/double_double.hpp"

namespace attest {

constexpr std::int64_t lane_multiple = 8;
constexpr std::int64_t padded(std::int64_t n) {
    return (n + lane_multiple - 1) / lane_multiple * lane_multiple;
}

/// Keys transposed: element c of key j at [c * stride + j]; lo is null where keys are doubles.
struct TransposedKeys {
    const double* hi = nullptr;
    const double* lo = nullptr;
    std::int64_t dim = 0, stride = 0;
};

/// dot[j] = q.k_j and, if size is not null, size[j] = sum_c |q_c k_jc|, for first <= j < last, both
/// multiples of lane_multiple.
void dots(const TransposedKeys& keys, const double* q, std::int64_t first, std::int64_t last,
          double* dot, double* size);
/// The same in double-double; q_lo may be null.
void dots(const TransposedKeys& keys, const double* q, const double* q_lo, std::int64_t first,
          std::int64_t last, double* dot_hi, double* dot_lo, double* size);

/// w[j] = exp(x[j] - max), 0 below -708, for n (padded: x reads -inf beyond its end). Returns the
/// sum. Relative error of a weight at most 4 units.
double exponentials(const double* x, double max, std::int64_t n, double* w);
/// In double-double, times 2^weight_shift; 0 below -768. x hi, lo are overwritten by the weights.
constexpr int weight_shift = 200;
DoubleDouble exponentials(DoubleDouble max, std::int64_t n, double* x_hi, double* x_lo);

/// out[c] = sum_j w[j] v[visible[j]][c], c < stride.
void combine(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
             const double* w, double* out);
/// In double-double, divided by `sum`, rounded to double.
void combine(const double* values, std::int64_t stride, std::span<const std::int64_t> visible,
             const double* w_hi, const double* w_lo, DoubleDouble sum, double* out);

/// The sums over keys of forward_bound.hpp, for all columns.
struct ColumnTask {
    const double* values = nullptr;  // [len_kv, stride]
    std::int64_t stride = 0;
    std::span<const std::int64_t> visible;
    std::span<const double> centred, plain, weight;
    const double* centre = nullptr;  // [stride]
    bool hull = true;                ///< low and high are wanted
};
struct ColumnSumsOut {
    double *spread, *plain, *mass, *low, *high;  // [stride]
};
/// Without hull, low and high are -inf and +inf.
void column_sums(const ColumnTask& task, const ColumnSumsOut& out);

}  // namespace attest
