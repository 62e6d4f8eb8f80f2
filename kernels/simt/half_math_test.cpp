// a b + c of 16-bit numbers against integers that hold it exactly: each result is the nearest there
// is, of two as near the even one.

#include "kernels/simt/half_math.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_int.hpp>
#include <random>

namespace simt {
namespace {

/// From 2^-266, the least of a product of bf16, to 2^257.
using Integer = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<
    640, 640, boost::multiprecision::signed_magnitude, boost::multiprecision::unchecked, void>>;

/// Where the bits of a number are, and what an integer of its magnitude counts. An infinity's bits
/// stand for the power of two behind the largest number, as rounding has it.
template <Half H>
struct Magnitudes {
    static constexpr int fraction = std::is_same_v<H, __half> ? 10 : 7;
    static constexpr int quantum = std::is_same_v<H, __half> ? -24 : -133;  // of subnormals
    static constexpr std::uint16_t infinity = std::is_same_v<H, __half> ? 0x7C00 : 0x7F80;
    static constexpr std::uint16_t sign = 0x8000;

    /// In units of 2^quantum.
    static Integer magnitude(std::uint16_t bits) {
        const int exponent = (bits & 0x7FFF) >> fraction;
        const Integer rest = bits & ((1 << fraction) - 1);
        return exponent == 0 ? rest : Integer(rest + (1 << fraction)) << (exponent - 1);
    }
    static Integer value(std::uint16_t bits) {
        return (bits & sign) != 0 ? Integer(-magnitude(bits)) : magnitude(bits);
    }
};

template <Half H>
H number(unsigned bits) {
    H h;
    h.x = static_cast<std::uint16_t>(bits);
    return h;
}

/// The nearest number to |a b + c|, by halving: magnitudes grow with their bits.
template <Half H>
std::uint16_t nearest(const Integer& exact) {  // in units of 4^quantum
    using B = Magnitudes<H>;
    const auto scaled = [](unsigned bits) {
        return Integer(B::magnitude(static_cast<std::uint16_t>(bits)) << -B::quantum);
    };
    const Integer size = abs(exact);
    unsigned below = 0, above = B::infinity;
    while (above - below > 1) {
        const unsigned middle = (below + above) / 2;
        (scaled(middle) <= size ? below : above) = middle;
    }
    const Integer twice = size * 2, between = scaled(below) + scaled(above);
    const bool up = twice > between || (twice == between && (below & 1) != 0);
    return static_cast<std::uint16_t>(up ? above : below);
}

template <Half H>
void expect_nearest(H a, H b, H c) {
    using B = Magnitudes<H>;
    const Integer exact = B::value(a.x) * B::value(b.x) + (B::value(c.x) << -B::quantum);
    const std::uint16_t size = nearest<H>(exact);
    const H observed = __hfma(a, b, c);
    if (exact == 0) {  // of the sum's sign, which the product's and c's say
        ASSERT_EQ(observed.x & 0x7FFF, 0) << float(a) << " * " << float(b) << " + " << float(c);
        return;
    }
    ASSERT_EQ(observed.x, size | (exact < 0 ? B::sign : 0))
        << std::hexfloat << float(a) << " * " << float(b) << " + " << float(c);
}

template <typename H>
struct FusedOf : testing::Test {};

using Both = testing::Types<__half, __nv_bfloat16>;
TYPED_TEST_SUITE(FusedOf, Both);

TYPED_TEST(FusedOf, RandomTriples) {
    std::mt19937 random(1);
    const auto any = [&] {
        for (;;) {
            const auto h = number<TypeParam>(random());
            if ((h.x & 0x7FFF) < Magnitudes<TypeParam>::infinity) return h;
        }
    };
    for (int i = 0; i < 1'000'000; ++i) expect_nearest(any(), any(), any());
}

/// Whether it lies in the middle between two numbers.
template <Half H>
bool is_tie(double exact) {
    int exponent = 0;
    std::frexp(exact, &exponent);
    const int place = std::max(exponent - 1 - Magnitudes<H>::fraction, Magnitudes<H>::quantum);
    return std::fmod(std::ldexp(exact, 1 - place), 2) == 1;
}

/// Products in the middle between two numbers, and summands of any size that move them off it.
TYPED_TEST(FusedOf, ProductsAtATie) {
    using B = Magnitudes<TypeParam>;
    std::mt19937 random(2);
    for (int ties = 0; ties < 50'000;) {
        const auto a = number<TypeParam>(random() % B::infinity);
        const auto b = number<TypeParam>(random() % B::infinity);
        if (!is_tie<TypeParam>(static_cast<double>(float(a)) * float(b))) continue;
        ++ties;
        const auto small = static_cast<unsigned>(random() % (ties % 3 == 0 ? 4 : B::infinity));
        for (const unsigned sign : {0u, 0x8000u}) {
            expect_nearest(a, b, number<TypeParam>(small | sign));
            expect_nearest(number<TypeParam>(a.x | 0x8000u), b, number<TypeParam>(small | sign));
        }
    }
}

/// A number as c, and a product of half its last place and a little more or less.
TYPED_TEST(FusedOf, SummandsAtATie) {
    using B = Magnitudes<TypeParam>;
    std::mt19937 random(3);
    const unsigned one = 1u << B::fraction;
    for (int i = 0; i < 50'000; ++i) {
        const unsigned exponent = 1 + static_cast<unsigned>(random()) % (B::infinity / one - 1);
        const auto c = number<TypeParam>(exponent * one + random() % one);
        const float half = std::ldexp(1.0f, static_cast<int>(exponent) - 2 + B::quantum);
        const int shift = static_cast<int>(random() % 15);
        const TypeParam a(std::ldexp(1.0f, shift)), b(std::ldexp(half, -shift));
        for (int off = -1; off <= 1; ++off)
            for (const unsigned sign : {0u, 0x8000u}) {
                const unsigned bits = (b.x & 0x7FFF) == 0 ? 0 : b.x + static_cast<unsigned>(off);
                expect_nearest(a, number<TypeParam>(bits | sign), c);
            }
    }
}

TEST(Fused, ASummandFarBelowATieDecides) {
    const __nv_bfloat16 a(7.0f), b(37.0f / 256), up(std::ldexp(1.0f, -60)), down(-float(up));
    EXPECT_EQ(float(__hfma(a, b, down)), 129.0f / 128);
    EXPECT_EQ(float(__hfma(a, b, up)), 130.0f / 128);
    EXPECT_EQ(float(__hfma(a, b, __nv_bfloat16(0.0f))), 130.0f / 128);
}

TEST(Fused, WhatIsNotFiniteAndZeros) {
    const __half infinite(INFINITY), one(1.0f), zero(0.0f), below(-0.0f);
    EXPECT_EQ(float(__hfma(infinite, one, one)), INFINITY);
    EXPECT_TRUE(std::isnan(float(__hfma(infinite, zero, one))));
    EXPECT_TRUE(std::isnan(float(__hfma(infinite, one, __half(-INFINITY)))));
    EXPECT_EQ(__hfma(one, below, below).x, 0x8000);
    EXPECT_EQ(__hfma(one, zero, below).x, 0);
    EXPECT_EQ(__hfma(one, one, __half(-1.0f)).x, 0);
}

}  // namespace
}  // namespace simt
