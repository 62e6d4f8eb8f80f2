#pragma once
// The oracle's bound on its own error (../bound/README.md, "The oracle's own error"), for the
// straightforward algorithm of attention.hpp.

#include <cmath>
#include <limits>

#include "reference/bound/forward_bound.hpp"

namespace attest::oracle {

/// The errors of one arithmetic.
struct ArithmeticError {
    double unit = 0;                  ///< relative, one + - * /
    double function = 0;              ///< relative for exp; absolute for tanh, sin, cos; times
                                      ///< 1 + |log x| for log
    double (*sum)(double) = nullptr;  ///< relative to sum |x y|, a sum of n products
    double underflow = 0;             ///< absolute, one operation
    double weight_floor = 0;          ///< an exp below this may come out as 0
    double range = 0;                 ///< largest magnitude for which all this holds
    double angle_range = 0;           ///< largest angle of sin and cos
};

/// The part of the row's own error that its elements share.
struct OwnError {
    double weight = 0;    ///< H: relative, of every weight before normalisation
    double sum = 0;       ///< relative to sum p |v|
    double absolute = 0;  ///< per sum |v|
    double once = 0;      ///< absolute, of the sums
    double lse = 0;       ///< natural
    double unit = 0;
};

/// `value_max`: the largest |v| of the row's keys; `angle_max`: the largest angle turned by.
OwnError own_error(const ArithmeticError& arithmetic, const bound::KernelModel& problem,
                   const bound::RowOutline& row, const bound::RowMaxima& maxima, double value_max,
                   double angle_max);

/// What rounding a number near `value` to double costs.
inline double double_rounding(double value) {
    return 0x1p-53 * std::abs(value) + std::numeric_limits<double>::denorm_min();
}

}  // namespace attest::oracle
