#pragma once
// exp and tanh of double_double.hpp over constants that are given, for wherever those lie.

#include <array>
#include <cmath>
#include <cstddef>

#include "reference/oracle/double_double_constants.hpp"

namespace attest::oracle {

template <std::size_t parts>
constexpr DoubleDouble reduce(DoubleDouble x, double k, const std::array<double, parts>& step) {
    // k step_i is exact, so each subtraction has the relative error of a double-double sum.
    DoubleDouble r = x;
    for (const double part : step) r = r - DoubleDouble(k * part);
    return r;
}

// exp(x) = 2^(k/64) exp(r), |r| <= log(2)/128 < 0.0055. The tail sum_{n>=12} r^n/n! is below
// 2^-118. Terms from n = 6 on weigh less than 2^-54 of the sum, so double suffices for them.
constexpr DoubleDouble exp(DoubleDouble x, const DoubleDoubleConstants& table) noexcept {
    if (!(x.hi >= -630)) return {};
    const double k = std::nearbyint(x.hi * table.steps_per_unit);
    const DoubleDouble r = reduce(x, k, table.log2_step);
    double high = table.inverse_factorial[11].hi;
    for (std::size_t n = 10; n >= 6; --n) high = high * r.hi + table.inverse_factorial[n].hi;
    DoubleDouble sum = DoubleDouble(high) * r + table.inverse_factorial[5];
    for (std::size_t n = 4; n >= 1; --n) sum = sum * r + table.inverse_factorial[n];
    sum = sum * r;
    const int index = static_cast<int>(k);
    const std::size_t entry = static_cast<std::size_t>(index & (exp_table_size - 1));
    const DoubleDouble base{table.two_to_hi[entry], table.two_to_lo[entry]};
    const DoubleDouble y = base + base * sum;
    const int exponent = index >> exp_table_bits;
    return {std::ldexp(y.hi, exponent), std::ldexp(y.lo, exponent)};
}

constexpr DoubleDouble tanh(DoubleDouble x, const DoubleDoubleConstants& table) noexcept {
    const bool negative = x.hi < 0;
    const DoubleDouble a = negative ? -x : x;
    // 1 - tanh(40) < 2^-114.
    DoubleDouble y(1);
    if (a.hi < 40) {
        const DoubleDouble e = exp(DoubleDouble(-2 * a.hi, -2 * a.lo), table);
        y = (DoubleDouble(1) - e) / (DoubleDouble(1) + e);
    }
    return negative ? -y : y;
}

}  // namespace attest::oracle
