#include "kernels/simt/half.hpp"

namespace simt {

std::uint16_t half_from_float(float value) {
    const std::uint32_t bits = float_bits(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
    // 65520 is the midpoint between the largest f16 and the next power of two: it rounds to even,
    // infinity.
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        // Subnormal: adding 2^-1 moves the f16 subnormal ulp, 2^-24, to the last bit of an f32 in
        // [0.5, 1), so the hardware's own addition rounds to nearest even there.
        const float shifted = bits_float(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(sign | (float_bits(shifted) - 0x3f000000u));
    }
    const std::uint32_t odd = magnitude >> 13 & 1u;
    const std::uint32_t rounded_up = magnitude + 0xfffu + odd - 0x38000000u;
    return static_cast<std::uint16_t>(sign | rounded_up >> 13);
}

std::uint16_t bfloat16_from_float(float value) {
    const std::uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float half_to_float(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = bits >> 10 & 0x1fu;
    const std::uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0x1fu) return bits_float(sign | 0x7f800000u | fraction << 13);
    if (exponent != 0) return bits_float(sign | (exponent + 112u) << 23 | fraction << 13);
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // exact: a subnormal
    return sign != 0 ? -magnitude : magnitude;
}

}  // namespace simt
