#pragma once
// The four formats of the ABI: reading rows into the accumulate format and rounding results
// back. Written apart from reference/problem on purpose: the truth shares no helper with what it
// judges. Every narrowing is one rounding, to nearest even, with gradual underflow.

#include <cstddef>
#include <cstdint>

#include "kernels/interface/attest_kernel.h"

namespace attest::cpu {

enum class Format : std::int32_t {
    f64 = ATTEST_F64,
    f32 = ATTEST_F32,
    f16 = ATTEST_F16,
    bf16 = ATTEST_BF16
};

constexpr std::int64_t bytes_of(Format format) noexcept {
    return format == Format::f64 ? 8 : format == Format::f32 ? 4 : 2;
}

float widen_f16(std::uint16_t bits) noexcept;
float widen_bf16(std::uint16_t bits) noexcept;
std::uint16_t narrow_f16(float value) noexcept;
std::uint16_t narrow_bf16(float value) noexcept;
std::uint16_t narrow_f16(double value) noexcept;
std::uint16_t narrow_bf16(double value) noexcept;

/// Reads `count` elements that lie `stride` elements apart. Real is float or double; f64 elements
/// are read into double alone.
template <typename Real>
void load_row(const std::byte* from, Format format, std::int64_t stride, std::int64_t count,
              Real* to) noexcept;

template <typename Real>
void store_row(std::byte* to, Format format, std::int64_t stride, std::int64_t count,
               const Real* from) noexcept;

/// The nearest member of `format`; the value itself where the format holds every Real.
template <typename Real>
Real rounded(Real value, Format format) noexcept;

}  // namespace attest::cpu
