#include "kernels/cpu/element.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace attest::cpu {
namespace {

/// One rounding from double, to a format with `fraction` stored bits whose smallest normal is
/// 2^exponent_min. The hidden bit of the rounded significand adds one to the exponent field, and
/// so does a carry out of the fraction: both are the plain sum.
std::uint16_t narrow(double value, int fraction, int exponent_min) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000u);
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
    const auto infinity = static_cast<std::uint64_t>(0x7fffu >> fraction << fraction);
    if (magnitude > 0x7ff0000000000000u) {
        return static_cast<std::uint16_t>(sign | infinity | (1u << (fraction - 1)));
    }
    const int exponent = static_cast<int>(magnitude >> 52) - 1023;
    if (exponent == -1023) return sign;  // below 2^-1022: far under half of any subnormal here
    const int below = exponent < exponent_min ? exponent_min - exponent : 0;
    const int shift = 52 - fraction + below;
    if (shift > 53) return sign;
    const std::uint64_t significand = (std::uint64_t{1} << 52) | (magnitude & 0x000fffffffffffffu);
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    const std::uint64_t rest = significand & (2 * half - 1);
    std::uint64_t kept = significand >> shift;
    if (rest > half || (rest == half && (kept & 1u) != 0)) ++kept;
    if (below == 0) kept += static_cast<std::uint64_t>(exponent - exponent_min) << fraction;
    return static_cast<std::uint16_t>(sign | (kept < infinity ? kept : infinity));
}

template <typename Stored, typename Real, typename Widen>
void load_with(const std::byte* from, std::int64_t stride, std::int64_t count, Real* to,
               Widen widen) noexcept {
    const auto step = stride * static_cast<std::int64_t>(sizeof(Stored));
    if (stride == 1) {  // a loop of its own, so that it vectorises
        for (std::int64_t c = 0; c < count; ++c) {
            Stored element;
            std::memcpy(&element, from + c * static_cast<std::int64_t>(sizeof(Stored)),
                        sizeof element);
            to[c] = static_cast<Real>(widen(element));
        }
        return;
    }
    for (std::int64_t c = 0; c < count; ++c) {
        Stored element;
        std::memcpy(&element, from + c * step, sizeof element);
        to[c] = static_cast<Real>(widen(element));
    }
}

template <typename Stored, typename Real, typename Narrow>
void store_with(std::byte* to, std::int64_t stride, std::int64_t count, const Real* from,
                Narrow narrowed) noexcept {
    const auto step = stride * static_cast<std::int64_t>(sizeof(Stored));
    for (std::int64_t c = 0; c < count; ++c) {
        const Stored element = narrowed(from[c]);
        std::memcpy(to + c * step, &element, sizeof element);
    }
}

/// The float whose exponent and fraction are those of the half, times 2^112, which moves the
/// exponent bias from 15 to 127 and makes subnormals normal, exactly. Infinity and NaN come out as
/// 2^16 and more, and get the top exponent back.
inline float half_to_float(std::uint16_t bits) noexcept {
    const std::uint32_t shifted = (bits & 0x7fffu) << 13;
    const float scaled = std::bit_cast<float>(shifted) * 0x1p112f;
    const std::uint32_t top = scaled >= 65536.0f ? 0x7f800000u : 0u;
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | top | sign);
}

inline float brain_to_float(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace

float widen_f16(std::uint16_t bits) noexcept {
    return half_to_float(bits);
}
float widen_bf16(std::uint16_t bits) noexcept {
    return brain_to_float(bits);
}
std::uint16_t narrow_f16(double value) noexcept {
    return narrow(value, 10, -14);
}
std::uint16_t narrow_bf16(double value) noexcept {
    return narrow(value, 7, -126);
}

std::uint16_t narrow_f16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    std::uint32_t result = 0;
    if (magnitude >= 0x47800000u) {  // 2^16 and more, infinity, NaN
        result = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    } else if (magnitude < 0x38800000u) {
        // Below 2^-14: adding 1/2, whose ulp is the format's subnormal step 2^-24, rounds there.
        const float sum = std::bit_cast<float>(magnitude) + 0.5f;
        result = std::bit_cast<std::uint32_t>(sum) - 0x3f000000u;
    } else {
        result = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | result);
}

std::uint16_t narrow_bf16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <typename Real>
void load_row(const std::byte* from, Format format, std::int64_t stride, std::int64_t count,
              Real* to) noexcept {
    switch (format) {
        case Format::f64:
            return load_with<double>(from, stride, count, to, [](double x) { return x; });
        case Format::f32:
            return load_with<float>(from, stride, count, to, [](float x) { return x; });
        case Format::f16:
            return load_with<std::uint16_t>(from, stride, count, to, half_to_float);
        case Format::bf16:
            return load_with<std::uint16_t>(from, stride, count, to, brain_to_float);
    }
}

template <typename Real>
void store_row(std::byte* to, Format format, std::int64_t stride, std::int64_t count,
               const Real* from) noexcept {
    switch (format) {
        case Format::f64:
            return store_with<double>(to, stride, count, from,
                                      [](Real x) { return static_cast<double>(x); });
        case Format::f32:
            return store_with<float>(to, stride, count, from,
                                     [](Real x) { return static_cast<float>(x); });
        case Format::f16:
            return store_with<std::uint16_t>(to, stride, count, from,
                                             [](Real x) { return narrow_f16(x); });
        case Format::bf16:
            return store_with<std::uint16_t>(to, stride, count, from,
                                             [](Real x) { return narrow_bf16(x); });
    }
}

template <typename Real>
Real rounded(Real value, Format format) noexcept {
    switch (format) {
        case Format::f64:
            break;
        case Format::f32:
            return static_cast<Real>(static_cast<float>(value));
        case Format::f16:
            return static_cast<Real>(widen_f16(narrow_f16(value)));
        case Format::bf16:
            return static_cast<Real>(widen_bf16(narrow_bf16(value)));
    }
    return value;
}

template void load_row<float>(const std::byte*, Format, std::int64_t, std::int64_t,
                              float*) noexcept;
template void load_row<double>(const std::byte*, Format, std::int64_t, std::int64_t,
                               double*) noexcept;
template void store_row<float>(std::byte*, Format, std::int64_t, std::int64_t,
                               const float*) noexcept;
template void store_row<double>(std::byte*, Format, std::int64_t, std::int64_t,
                                const double*) noexcept;
template float rounded<float>(float, Format) noexcept;
template double rounded<double>(double, Format) noexcept;

}  // namespace attest::cpu
