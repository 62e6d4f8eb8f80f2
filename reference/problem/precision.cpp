#include "reference/problem/precision.hpp"

#include <array>
#include <bit>
#include <cstdlib>
#include <limits>

#include "reference/problem/errors.hpp"

namespace attest {
namespace {

constexpr std::array<FormatTraits, 4> format_traits = {{
    {53, -1022, 1023, 0x1p-53, std::numeric_limits<double>::max()},
    {24, -126, 127, 0x1p-24, 0x1.fffffep+127},
    {11, -14, 15, 0x1p-11, 65504.0},
    {8, -126, 127, 0x1p-8, 0x1.fep+127},
}};

constexpr std::array<std::string_view, 6> type_names = {"f64", "f32", "f16", "bf16", "i32", "u8"};

/// A narrow format by its two free constants: p significant bits, smallest normal exponent. The
/// format's field of exponents is symmetric: exponent_max = 1 - exponent_min.
template <int p, int exponent_min>
struct NarrowFormat {
    static constexpr int stored_bits = p - 1;
    static constexpr std::uint64_t exponent_count = 2 * (1 - exponent_min) + 1;
    static constexpr std::uint64_t infinity = exponent_count << stored_bits;
    static constexpr std::uint64_t fraction_mask = (std::uint64_t{1} << stored_bits) - 1;
    /// Position of the sign: above the exponent field of exponent_count + 1 values.
    static constexpr int sign_shift = stored_bits + std::bit_width(exponent_count);
};
using F32 = NarrowFormat<24, -126>;
using F16 = NarrowFormat<11, -14>;
using Bf16 = NarrowFormat<8, -126>;
static_assert(F32::infinity == 0x7f800000 && F32::sign_shift == 31);
static_assert(F16::infinity == 0x7c00 && F16::sign_shift == 15);
static_assert(Bf16::infinity == 0x7f80 && Bf16::sign_shift == 15);

/// Round to nearest even in integers. Of a number that is normal there, half a unit of the last bit
/// kept is added, less one where that bit is even: what carries out of the significand steps into
/// the next binade, and out of the largest one into infinity, by itself. Of a subnormal one, with m
/// the 53-bit significand, q = m >> drop is kept, and what was dropped looked at.
template <int p, int exponent_min>
std::uint64_t round_bits(std::uint64_t wide) noexcept {
    using Format = NarrowFormat<p, exponent_min>;
    constexpr std::uint64_t hidden = std::uint64_t{1} << 52;
    const std::uint64_t sign = (wide >> 63) << Format::sign_shift;
    const int field = static_cast<int>((wide >> 52) & 0x7ff);
    const std::uint64_t fraction = wide & (hidden - 1);
    if (field == 0x7ff) {
        if (fraction == 0) return sign | Format::infinity;
        const std::uint64_t payload = fraction >> (53 - p);
        const std::uint64_t quiet = std::uint64_t{1} << (Format::stored_bits - 1);
        return sign | Format::infinity | (payload != 0 ? payload : quiet);
    }
    const int exponent = field - 1023;
    constexpr int cut = 53 - p;
    if (exponent >= exponent_min) {
        const std::uint64_t magnitude = wide & ~(std::uint64_t{1} << 63);
        const std::uint64_t odd = (magnitude >> cut) & 1;
        const std::uint64_t q = (magnitude + (std::uint64_t{1} << (cut - 1)) - 1 + odd) >> cut;
        constexpr auto below = static_cast<std::uint64_t>(exponent_min - 1 + 1023);
        const std::uint64_t rounded = q - (below << Format::stored_bits);
        return sign | (rounded < Format::infinity ? rounded : Format::infinity);
    }
    const int drop = cut + exponent_min - exponent;
    // Below half the smallest subnormal; this also takes zero and the subnormals of double.
    if (drop > 53) return sign;
    const std::uint64_t m = fraction | hidden;
    const std::uint64_t rest = m & ((std::uint64_t{1} << drop) - 1);
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    std::uint64_t q = m >> drop;
    q += rest > half || (rest == half && (q & 1) != 0);
    return sign | q;
}

/// The bits of the same value as a double. Every member of a narrow format is one, and its
/// subnormals are normal there.
template <int p, int exponent_min>
std::uint64_t widen_bits(std::uint64_t narrow) noexcept {
    using Format = NarrowFormat<p, exponent_min>;
    const std::uint64_t sign = ((narrow >> Format::sign_shift) & 1) << 63;
    const std::uint64_t field = (narrow >> Format::stored_bits) & Format::exponent_count;
    std::uint64_t fraction = narrow & Format::fraction_mask;
    if (field == Format::exponent_count)
        return sign | (std::uint64_t{0x7ff} << 52) | fraction << (53 - p);
    int exponent = static_cast<int>(field) + exponent_min - 1;
    if (field == 0) {
        if (fraction == 0) return sign;
        const int shift = p - static_cast<int>(std::bit_width(fraction));
        fraction = (fraction << shift) & Format::fraction_mask;
        exponent = exponent_min - shift;
    }
    return sign | static_cast<std::uint64_t>(exponent + 1023) << 52 | fraction << (53 - p);
}

}  // namespace

FormatTraits traits(Precision precision) noexcept {
    return format_traits[static_cast<std::size_t>(precision)];
}

std::string_view name(Precision precision) noexcept {
    return name(element_type(precision));
}

std::string_view name(ElementType type) noexcept {
    return type_names[static_cast<std::size_t>(type)];
}

bool parse(std::string_view text, Precision& out) noexcept {
    for (const Precision p : {Precision::f64, Precision::f32, Precision::f16, Precision::bf16}) {
        if (text != name(p)) continue;
        out = p;
        return true;
    }
    return false;
}

std::size_t size_of(ElementType type) noexcept {
    constexpr std::array<std::size_t, 6> sizes = {8, 4, 2, 2, 4, 1};
    return sizes[static_cast<std::size_t>(type)];
}

Precision precision_of(ElementType type) noexcept {
    return static_cast<Precision>(type);
}

ElementType element_type(Precision precision) noexcept {
    return static_cast<ElementType>(precision);
}

double round_to(double value, Precision precision) noexcept {
    if (precision == Precision::f64) return value;
    // What encode() says, the machine says faster.
    if (precision == Precision::f32) return static_cast<double>(static_cast<float>(value));
    return decode(encode(value, precision), precision);
}

// encode and decode are never inlined: g++ 12 drops a truncation of bits where two inlined rounding
// helpers share a tail (precision_test.cpp keeps the reproducer).
[[gnu::noinline]] std::uint64_t encode(double value, Precision precision) noexcept {
    const auto wide = std::bit_cast<std::uint64_t>(value);
    switch (precision) {
        case Precision::f64:
            return wide;
        case Precision::f32:
            return round_bits<24, -126>(wide);
        case Precision::f16:
            return round_bits<11, -14>(wide);
        case Precision::bf16:
            return round_bits<8, -126>(wide);
    }
    return wide;
}

namespace {

template <int p, int exponent_min>
[[gnu::noinline]] void round_all(std::span<const double> values, std::span<std::uint16_t> bits) {
    for (std::size_t i = 0; i < values.size(); ++i)
        bits[i] = static_cast<std::uint16_t>(
            round_bits<p, exponent_min>(std::bit_cast<std::uint64_t>(values[i])));
}

}  // namespace

void encode(std::span<const double> values, Precision precision, std::span<std::uint16_t> bits) {
    require(precision == Precision::f16 || precision == Precision::bf16, "a format of 16 bits");
    require(bits.size() == values.size(), "every number has a place");
    precision == Precision::f16 ? round_all<11, -14>(values, bits)
                                : round_all<8, -126>(values, bits);
}

[[gnu::noinline]] double decode(std::uint64_t bits, Precision precision) noexcept {
    switch (precision) {
        case Precision::f64:
            break;
        case Precision::f32:
            bits = widen_bits<24, -126>(bits);
            break;
        case Precision::f16:
            bits = widen_bits<11, -14>(bits);
            break;
        case Precision::bf16:
            bits = widen_bits<8, -126>(bits);
            break;
    }
    return std::bit_cast<double>(bits);
}

std::int64_t ulps_between(double a, double b, Precision precision) noexcept {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (a != a || b != b) return most;
    // Members in order of value are consecutive integers: minus the magnitude for negative ones.
    const int sign_shift = static_cast<int>(8 * size_of(element_type(precision))) - 1;
    const auto rank = [&](double x) {
        const std::uint64_t bits = encode(x, precision);
        const std::uint64_t sign = bits >> sign_shift;
        const auto magnitude = static_cast<std::int64_t>(bits ^ (sign << sign_shift));
        return sign != 0 ? -magnitude : magnitude;
    };
    const std::int64_t low = rank(a < b ? a : b), high = rank(a < b ? b : a);
    if (low < 0 && high > most + low) return most;
    return high - low;
}

}  // namespace attest
