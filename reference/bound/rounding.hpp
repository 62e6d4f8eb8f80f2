#pragma once
// The facts about rounding that every bound is built from.

#include "reference/problem/precision.hpp"

namespace attest::bound {

/// The bounds themselves are evaluated in double, by fewer than 2^20 operations a term of a few
/// units of 2^-53 each, from sums of at most 2^30 terms of one sign (relative error below 2^-22),
/// at p_j, s_j and O_c that are exact to 2^-17: this covers all of it.
inline constexpr double evaluation = 1.0001;

/// gamma(n, u) = n u / (1 - n u): if |d_i| <= u then |(1+d_1)^(+-1)...(1+d_n)^(+-1) - 1| <= gamma
/// (Higham, Accuracy and Stability of Numerical Algorithms, Lemma 3.1). It bounds the relative
/// error each addend of a sum collects on a path of n roundings, in whatever order the sum is
/// taken. The lemma needs n u < 1; where n u reaches 1/2 nothing is claimed: infinite.
inline double chain_error(double roundings, double unit) noexcept {
    const double product = roundings * unit;
    if (!(product < 0.5)) return infinite;
    return product / (1 - product);
}

}  // namespace attest::bound
