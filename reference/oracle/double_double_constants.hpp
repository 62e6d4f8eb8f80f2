#pragma once
// Constants of the double-double functions, computed once to 50 digits.

#include <array>

#include "reference/oracle/double_double.hpp"

namespace attest::oracle {

constexpr int exp_table_bits = 6;
constexpr int exp_table_size = 1 << exp_table_bits;

struct DoubleDoubleConstants {
    std::array<double, 4> log2_step{};  ///< log(2)/64 in parts of 33 bits
    std::array<double, 7> half_pi{};    ///< in parts of 21 bits
    double steps_per_unit = 0, quarters_per_radian = 0;
    std::array<double, exp_table_size> two_to_hi{}, two_to_lo{};  ///< 2^(i/64)
    std::array<DoubleDouble, 28> inverse_factorial{};
};

const DoubleDoubleConstants& double_double_constants();

}  // namespace attest::oracle
