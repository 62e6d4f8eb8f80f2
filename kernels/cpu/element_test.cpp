#include "kernels/cpu/element.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attest::cpu {
namespace {

struct Half {
    static float widen(std::uint16_t bits) { return widen_f16(bits); }
    template <typename Real>
    static std::uint16_t narrow(Real value) {
        return narrow_f16(value);
    }
    static constexpr std::uint16_t infinity = 0x7c00;
    static constexpr double overflow = 65536;
};

struct Brain {
    static float widen(std::uint16_t bits) { return widen_bf16(bits); }
    template <typename Real>
    static std::uint16_t narrow(Real value) {
        return narrow_bf16(value);
    }
    static constexpr std::uint16_t infinity = 0x7f80;
    static constexpr double overflow = 0x1p128;
};

template <typename Kind>
class Element : public testing::Test {};
using Kinds = testing::Types<Half, Brain>;
TYPED_TEST_SUITE(Element, Kinds);

TYPED_TEST(Element, EveryNumberComesBack) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto b = static_cast<std::uint16_t>(bits);
        const float value = TypeParam::widen(b);
        if ((b & 0x7fff) > TypeParam::infinity) {
            EXPECT_TRUE(std::isnan(value));
            EXPECT_TRUE(std::isnan(TypeParam::widen(TypeParam::narrow(value))));
            EXPECT_TRUE(std::isnan(TypeParam::widen(TypeParam::narrow(double{value}))));
            continue;
        }
        ASSERT_EQ(TypeParam::narrow(value), b);
        ASSERT_EQ(TypeParam::narrow(double{value}), b);
    }
}

/// Between every two neighbours: the midpoint goes to the even one, the doubles and floats beside
/// it to their own side. The double beside it, read through float, would be the midpoint again.
TYPED_TEST(Element, MidpointsGoToEvenAndTheirNeighboursDoNot) {
    for (std::uint32_t bits = 0; bits < TypeParam::infinity; ++bits) {
        const auto low = static_cast<std::uint16_t>(bits),
                   high = static_cast<std::uint16_t>(bits + 1);
        const double above =
            high == TypeParam::infinity ? TypeParam::overflow : double{TypeParam::widen(high)};
        const double middle = (double{TypeParam::widen(low)} + above) / 2;
        const std::uint16_t even = (low & 1u) == 0 ? low : high;
        for (const double sign : {1.0, -1.0}) {
            const auto s = static_cast<std::uint16_t>(sign < 0 ? 0x8000 : 0);
            ASSERT_EQ(TypeParam::narrow(sign * middle), s | even) << bits;
            ASSERT_EQ(TypeParam::narrow(sign * std::nextafter(middle, 0.0)), s | low) << bits;
            ASSERT_EQ(TypeParam::narrow(sign * std::nextafter(middle, INFINITY)), s | high) << bits;
            const auto exact = static_cast<float>(sign * middle);
            if (double{exact} != sign * middle) continue;  // below the floats' subnormals
            ASSERT_EQ(TypeParam::narrow(exact), s | even) << bits;
            ASSERT_EQ(TypeParam::narrow(std::nextafter(exact, 0.0f)), s | low) << bits;
            ASSERT_EQ(TypeParam::narrow(std::nextafter(exact, exact * INFINITY)), s | high) << bits;
        }
    }
}

TYPED_TEST(Element, FloatAndDoubleRoundAlike) {
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 65521) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (std::isnan(value)) continue;
        ASSERT_EQ(TypeParam::narrow(value), TypeParam::narrow(double{value})) << value;
    }
}

TEST(ElementRow, StridesCountElements) {
    for (const Format format : {Format::f64, Format::f32, Format::f16, Format::bf16}) {
        std::byte memory[8 * 64];
        const double values[4] = {1, -0.5, 3, 2};
        const double filler[24] = {};
        store_row(memory, format, 1, 24, filler);
        store_row(memory, format, 3, 4, values);
        double read[12] = {};
        load_row(memory, format, 1, 12, read);
        for (int n = 0; n < 12; ++n) EXPECT_EQ(read[n], n % 3 == 0 ? values[n / 3] : 0.0);
        float strided[4] = {};
        load_row(memory, format, 3, 4, strided);
        for (int n = 0; n < 4; ++n) EXPECT_EQ(double{strided[n]}, values[n]);
    }
}

TEST(ElementRow, RoundedIsAMemberAndTheNearest) {
    EXPECT_EQ(rounded(0.3f, Format::bf16), 0.30078125f);  // a truncation would give 0.298828125
    EXPECT_EQ(rounded(0.3f, Format::f32), 0.3f);
    EXPECT_EQ(rounded(0.1, Format::f32), double{0.1f});
    EXPECT_EQ(rounded(0.1, Format::f64), 0.1);
    EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN(), Format::f16)));
}

}  // namespace
}  // namespace attest::cpu
