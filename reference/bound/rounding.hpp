#pragma once
// The two facts about rounding that every bound is built from.

#include <limits>

namespace attest::bound {

/// gamma(n, u) = n u / (1 - n u): if |d_i| <= u then |(1+d_1)^(+-1)...(1+d_n)^(+-1) - 1| <= gamma
/// (Higham, Accuracy and Stability of Numerical Algorithms, Lemma 3.1). It bounds the relative
/// error each addend of a sum collects on a path of n roundings, in whatever order the sum is
/// taken. The lemma needs n u < 1; where n u reaches 1/2 nothing is claimed: infinite.
inline double chain_error(double roundings, double unit) noexcept {
    const double product = roundings * unit;
    if (!(product < 0.5)) return std::numeric_limits<double>::infinity();
    return product / (1 - product);
}

}  // namespace attest::bound
