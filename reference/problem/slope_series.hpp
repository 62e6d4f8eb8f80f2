#pragma once
// The series of ALiBi's slopes, by their exponents of two.

#include <bit>
#include <cstdint>

#include "reference/problem/problem.hpp"

namespace attest {

/// Press, Smith, Lewis 2021: of H heads, a power of two, head h has slope 2^(-8(h+1)/H). Published
/// slopes of any other number begin with those of the power N below it, then every other one of 2N.
inline double slope_exponent(std::int64_t head, std::int64_t heads, AlibiSlopes series) {
    const auto term = [](std::int64_t number, std::int64_t of) {
        return -8.0 * static_cast<double>(number) / static_cast<double>(of);
    };
    if (series != AlibiSlopes::published) return term(head + 1, heads);
    const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
    return head < power ? term(head + 1, power) : term(2 * (head - power) + 1, 2 * power);
}

}  // namespace attest
