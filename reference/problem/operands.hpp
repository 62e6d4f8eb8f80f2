#pragma once
// Narrow numbers that a unit which multiplies matrices makes of its operands.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reference/problem/precision.hpp"

namespace attest {

/// What q, k, P, v (backward: dO and dS, too) are rounded to, or in tf32 cut off at, before they
/// are multiplied. TF32 has f32's range and 11 significant bits.
enum class Operands : std::uint8_t { unrounded, f32, tf32, f16, bf16 };

/// The constants of it. Cutting off, which TF32 admits, errs by twice as much as rounding.
inline FormatTraits traits(Operands operands) noexcept {
    switch (operands) {
        case Operands::f32:
            return traits(Precision::f32);
        case Operands::f16:
            return traits(Precision::f16);
        case Operands::bf16:
            return traits(Precision::bf16);
        case Operands::tf32: {
            FormatTraits cut = traits(Precision::f32);
            cut.significand_bits = 11;
            cut.unit_roundoff = 0x1p-10;
            cut.max_finite = std::ldexp(2 - 0x1p-10, cut.exponent_max);
            return cut;
        }
        default:
            return traits(Precision::f64);
    }
}

/// Of a number of f32: rounded to TF32, a tie away from zero as CUDA's cvt.rna does, or cut off.
inline double to_tf32(double x, bool cut) noexcept {
    if (x == 0 || !std::isfinite(x)) return x;
    constexpr int least = -136;  // its subnormal numbers are multiples of 2^-136
    const int unit = std::max(std::ilogb(x) - 10, least);
    const double m = std::ldexp(x, -unit);
    return std::ldexp(cut ? std::trunc(m) : std::round(m), unit);
}

}  // namespace attest
