#pragma once
// The numbers beside a double: std::nextafter, without its call. Interval arithmetic takes one step
// outward after each operation, of which there are some millions a run.

#include <bit>
#include <cstdint>

#include "reference/problem/precision.hpp"

namespace attest::bound {

inline double next_up(double x) noexcept {
    if (!(x < infinite)) return x;
    const auto bits = std::bit_cast<std::int64_t>(x + 0.0);  // of either zero those of +0
    return std::bit_cast<double>(bits < 0 ? bits - 1 : bits + 1);
}
inline double next_down(double x) noexcept {
    return -next_up(-x);
}

}  // namespace attest::bound
