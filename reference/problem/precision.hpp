#pragma once
// The number formats of attention kernels, and correct rounding into them.
//
// Every value attest draws, expects or compares is first an exact member of one of these formats.
// Rounding is round-to-nearest-even, done in one step from the wider type: going through float
// would round twice.

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace attest {

inline constexpr double infinite = std::numeric_limits<double>::infinity();

/// A floating-point format a kernel may take or return.
enum class Precision : std::uint8_t { f64, f32, f16, bf16 };

/// What one element of a tensor is: the four formats and the two integer types of
/// kernels/interface/attest_kernel.h.
enum class ElementType : std::uint8_t { f64, f32, f16, bf16, i32, u8 };

/// The constants of a binary format: p significant bits, normal exponents [exponent_min,
/// exponent_max].
struct FormatTraits {
    int significand_bits;  ///< with the hidden bit: 53, 24, 11, 8
    int exponent_min;      ///< of the smallest normal number 2^exponent_min: -1022, -126, -14, -126
    int exponent_max;      ///< of the largest binade: 1023, 127, 15, 127
    double
        unit_roundoff;  ///< u = 2^-significand_bits: half an ulp relative to the binade's lower end
    double max_finite;
};

FormatTraits traits(Precision precision) noexcept;
std::string_view name(Precision precision) noexcept;  ///< "f64", "f32", "f16", "bf16"
std::string_view name(ElementType type) noexcept;
bool parse(std::string_view text, Precision& out) noexcept;
std::size_t size_of(ElementType type) noexcept;  ///< bytes
ElementType element_type(Precision precision) noexcept;
Precision precision_of(ElementType type) noexcept;  ///< of one of the four formats

/// Round-to-nearest-even of an exact double into the format, with gradual underflow and overflow to
/// infinity; the result is the rounded value, again as a double. NaN stays NaN. One rounding, never
/// two.
double round_to(double value, Precision precision) noexcept;

/// The format's bits of a value that is already a member of it (or is rounded first), and back.
std::uint64_t encode(double value, Precision precision) noexcept;
/// So, of many numbers: f16 or bf16, whose bits go to as many places.
void encode(std::span<const double> values, Precision precision, std::span<std::uint16_t> bits);
double decode(std::uint64_t bits, Precision precision) noexcept;

/// Distance in units in the last place between two members of the format; saturates; NaN counts as
/// the maximum.
std::int64_t ulps_between(double a, double b, Precision precision) noexcept;

}  // namespace attest
