#include "ci/number.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/problem/precision.hpp"

namespace attest::ci {
namespace {

TEST(Number, RatioNeverReadsAsOne) {
    EXPECT_EQ(ratio_text(0.8871), "0.887");
    EXPECT_EQ(ratio_text(641.2), "641");
    EXPECT_EQ(ratio_text(1.0e6), "1.0e6");
    EXPECT_EQ(ratio_text(999.9), "1.0e3");
    EXPECT_EQ(ratio_text(0.0004), "<0.001");
    EXPECT_EQ(ratio_text(0.99951), "0.999");
    EXPECT_EQ(ratio_text(std::nextafter(1.0, 0.0)), "0.999");
    EXPECT_EQ(ratio_text(std::nextafter(1.0, 2.0)), "1.01");
    EXPECT_EQ(ratio_text(1.004), "1.01");
    EXPECT_EQ(ratio_text(0), "0");
    EXPECT_EQ(ratio_text(infinite), "inf");
    EXPECT_EQ(ratio_text(std::nan("")), "nan");
    for (double x = 0.98; x < 1.02; x += 0.0001) EXPECT_NE(ratio_text(x), "1.00") << x;
}

TEST(Number, ValuesAreShort) {
    EXPECT_EQ(value_text(0), "0");
    EXPECT_EQ(value_text(1), "1");
    EXPECT_EQ(value_text(0.5), "0.5");
    EXPECT_EQ(value_text(-0.693147), "-0.6931");
    EXPECT_EQ(value_text(1.0 / 65), "0.01538");
    EXPECT_EQ(value_text(12345678), "1.235e7");
    EXPECT_EQ(value_text(1e-9), "1e-9");
    EXPECT_EQ(value_text(-infinite), "-inf");
}

TEST(Number, TwoValuesCanBeToldApart) {
    EXPECT_EQ(value_texts(0, 1), (std::pair<std::string, std::string>{"0", "1"}));
    const auto close = value_texts(1.0, 1.0 + 0x1p-23);
    EXPECT_NE(close.first, close.second);
    const auto closest = value_texts(1.0, std::nextafter(1.0, 2.0));
    EXPECT_NE(closest.first, closest.second);
}

TEST(Number, BoundsAreRoundedUp) {
    EXPECT_EQ(bound_text(2.41e-5), "2.5e-5");
    EXPECT_EQ(bound_text(2.4e-5), "2.4e-5");
    EXPECT_EQ(bound_text(0), "0");
    EXPECT_EQ(bound_text(5e-324), "4.9e-324");  // no double is smaller
    EXPECT_EQ(bound_text(0.0991), "0.1");
    EXPECT_EQ(bound_text(infinite), "inf");
    for (double x = 1e-12; x < 1e12; x *= 1.0173) {
        EXPECT_GE(std::stod(bound_text(x)), x);
        EXPECT_LE(std::stod(bound_text(x)), x * 1.12);
    }
}

TEST(Number, HexFloatsReadBack) {
    EXPECT_EQ(hex_text(0), "0x0p+0");
    EXPECT_EQ(hex_text(0.5), "0x1p-1");
    EXPECT_EQ(hex_text(-1.5), "-0x1.8p+0");
    EXPECT_EQ(hex_text(std::nan("")), "nan");
    for (double x : {1.0 / 3, 5e-324, 1.7e308}) EXPECT_EQ(std::stod(hex_text(x)), x);
}

TEST(Number, CountsTimesShares) {
    EXPECT_EQ(count_text(0), "0");
    EXPECT_EQ(count_text(999), "999");
    EXPECT_EQ(count_text(11995), "11 995");
    EXPECT_EQ(count_text(16791525), "16 791 525");
    EXPECT_EQ(count_text(3'100'000'000), "3.1e9");
    EXPECT_EQ(large_count_text(16791525), "16.8 million");
    EXPECT_EQ(time_text(0.031), "31 ms");
    EXPECT_EQ(time_text(0.0031), "3.1 ms");
    EXPECT_EQ(time_text(6.91), "6.9 s");
    EXPECT_EQ(time_text(100), "1 min 40 s");
    EXPECT_EQ(time_text(140.4), "2 min 20 s");
    EXPECT_EQ(time_text(180), "3 min");
    EXPECT_EQ(time_text(840), "14 min");
    EXPECT_EQ(time_text(3 * 3600), "3.0 h");
    EXPECT_EQ(share_text(0.019), "1.9 %");
    EXPECT_EQ(counted(1, "law"), "1 law");
    EXPECT_EQ(counted(0, "law"), "0 laws");
}

}  // namespace
}  // namespace attest::ci
