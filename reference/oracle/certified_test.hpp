#pragma once
// What the oracle's tests on paper share. Include gtest first.

#include <cmath>

#include "reference/oracle/oracle.hpp"

namespace attest::oracle {

inline constexpr Arithmetic arithmetics[] = {Arithmetic::plain_double, Arithmetic::double_double,
                                             Arithmetic::exact};

/// value is `truth`, which is known to `slack` relative to 1, within the certified error.
inline void expect_certified(const bound::ExpectedElement& element, double truth,
                             double slack = 2e-16) {
    EXPECT_LE(std::abs(element.value - truth), element.error + slack * (1 + std::abs(truth)));
    EXPECT_LT(element.error, 1e-13 * (1 + std::abs(truth)));
}

}  // namespace attest::oracle
