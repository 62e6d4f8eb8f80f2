#include "reference/oracle/own_error.hpp"

#include <algorithm>
#include <cmath>

namespace attest::oracle {

namespace {}  // namespace

// As in kernel_model.cpp, with this arithmetic's constants: dot products within sum(d), plus scale
// and at most two additions (4 units); ALiBi's product and the two additions on the biases (4
// units); cap (function + 3 units, absolute); angles |t| ((1 + log(base)) function + 4 units): the
// frequency is exp of a product with log(base) (function's absolute error times 1 + log base),
// times the position; the rotation 2 function + 3 units a coordinate, as a vector 1.5 times that.
//
// The exponent adds a unit of (m - s_j), the weight one function. With H the largest relative error
// of a weight and the sums' errors g = sum(n + 1):
//   |N/l - O| <= [ H sum p |v - O| + g (1+H) sum p |v| + g (1+H) |O| ] / ((1-g)(1-H)) + unit |O|,
// and sum p |v - O| <= sum p |v| + |O|, |O| <= sum p |v|. 1.6 is 1.5, and 1.01 is 1, with the
// products of two errors.
OwnError own_error(const ArithmeticError& a, const bound::KernelModel& problem,
                   const bound::RowOutline& row, const bound::RowMaxima& maxima, double value_max,
                   double angle_max) {
    const double d = static_cast<double>(problem.dim_qk);
    const double n = row.entries;
    double dot = a.sum(d + 1) + 4 * a.unit;
    double angle = 0;
    if (problem.rope) {
        dot += (problem.rope_keys ? 2 : 1) * 1.6 * (2 * a.function + 3 * a.unit);
        angle = 1.01 * ((1 + problem.rope_log_base) * a.function + 4 * a.unit);
    }
    double absolute = problem.softcap > 0 ? problem.softcap * (a.function + 3 * a.unit) : 0;
    absolute += 4 * d * a.underflow * (problem.scale + row.q_max + row.k_max + 1);

    const double error_max =
        dot * maxima.magnitude + 4 * a.unit * maxima.bias + angle * maxima.turn + absolute;
    const double exponent_max = error_max + a.unit * (row.max - maxima.score_least);
    const double size_max = std::max(maxima.magnitude, maxima.score);
    const bool in_range = size_max < a.range && value_max < a.range && row.q_max < a.range &&
                          row.k_max < a.range && angle_max < a.angle_range &&
                          d * row.q_max * row.k_max < a.range;
    OwnError own;
    own.unit = a.unit;
    // log(1 + x) <= x, and expm1(x) <= x (1 + x) below 1.
    const double exponent = error_max + exponent_max + a.function;
    own.weight = exponent < 1 ? exponent * (1 + exponent) : infinite;
    own.sum = a.sum(n + 1);
    own.absolute = 2 * (a.underflow + a.weight_floor);
    own.once = 2 * (n + 4) * a.underflow;
    if (!in_range || !(own.weight < bound::facts_accuracy) || !(own.sum < bound::facts_accuracy)) {
        own.weight = own.lse = infinite;
        return own;
    }
    own.lse = 1.01 * (own.weight + own.sum + a.function * (1 + std::log(n)) +
                      3 * a.unit * (std::abs(row.max) + std::abs(row.lse))) +
              n * a.weight_floor + a.underflow;
    return own;
}

}  // namespace attest::oracle
