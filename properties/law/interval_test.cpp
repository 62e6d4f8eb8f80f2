#include "properties/law/interval.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace attest::law {
namespace {

constexpr Precision formats[] = {Precision::f64, Precision::f32, Precision::f16, Precision::bf16};

Precision any_format() {
    return formats[*rc::gen::inRange(0, 4)];
}

/// A real of any size a format of ours can show, both signs.
double any_real(double decades = 20) {
    const double mantissa = *rc::gen::inRange<std::int64_t>(-(1ll << 52), 1ll << 52);
    const int exponent = *rc::gen::resize(
        100, rc::gen::inRange(-static_cast<int>(3.4 * decades), static_cast<int>(3.4 * decades)));
    return std::ldexp(mantissa, exponent - 52);
}

RC_GTEST_PROP(Preimage, HoldsEveryRealThatRoundsToIt, ()) {
    const Precision format = any_format();
    const double x = any_real();
    RC_ASSERT(preimage(round_to(x, format), format).contains(x));
}

// Outside f64, whose half steps no double holds, the ends are the midpoints: one double further
// lies a number that rounds elsewhere.
RC_GTEST_PROP(Preimage, EndsWhereRoundingChanges, ()) {
    const Precision format = formats[*rc::gen::inRange(1, 4)];
    const double member = round_to(any_real(), format);
    RC_PRE(std::isfinite(member));
    const Interval all = preimage(member, format);
    RC_ASSERT(round_to(std::nextafter(all.lo, infinite), format) == member);
    RC_ASSERT(round_to(std::nextafter(all.hi, -infinite), format) == member);
    RC_ASSERT(round_to(std::nextafter(all.lo, -infinite), format) != member);
    RC_ASSERT(round_to(std::nextafter(all.hi, infinite), format) != member);
}

TEST(Preimage, OfInfinityBeginsHalfAStepAboveTheLargest) {
    EXPECT_EQ(preimage(infinite, Precision::f16), (Interval{65520, infinite}));
    EXPECT_EQ(preimage(-infinite, Precision::f16), (Interval{-infinite, -65520}));
    EXPECT_EQ(preimage(65504, Precision::f16).hi, 65520);
    EXPECT_EQ(preimage(0, Precision::f16), (Interval{-0x1p-25, 0x1p-25}));
}

TEST(Preimage, OfNaNMeetsNothing) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(meet(preimage(nan, Precision::f32), {-infinite, infinite}));
    EXPECT_FALSE(meet(truth_of(nan, infinite, Precision::f32), {-infinite, infinite}));
    EXPECT_EQ(separation(preimage(nan, Precision::f32), {0, 1}), infinite);
}

/// Two members of two intervals, and their exact images in long double.
struct Members {
    Interval a, b;
    long double x, y;
};

Members any_members() {
    const double p = any_real(6), q = any_real(6), r = any_real(6), s = any_real(6);
    const Interval a = {std::min(p, q), std::max(p, q)}, b = {std::min(r, s), std::max(r, s)};
    return {a, b, *rc::gen::element(a.lo, a.mid(), a.hi), *rc::gen::element(b.lo, b.mid(), b.hi)};
}

bool within(long double exact, const Interval& interval) {
    return static_cast<long double>(interval.lo) <= exact &&
           exact <= static_cast<long double>(interval.hi);
}

RC_GTEST_PROP(Interval, EveryOperationHoldsTheResultsOfAllMembers, ()) {
    const Members m = any_members();
    RC_ASSERT(within(m.x + m.y, m.a + m.b));
    RC_ASSERT(within(m.x - m.y, m.a - m.b));
    RC_ASSERT(within(m.x * m.y, m.a * m.b));
    RC_ASSERT(within(m.x * m.x, square(m.a)));
    if (!m.b.contains(0)) RC_ASSERT(within(m.x / m.y, m.a / m.b));
    RC_ASSERT(within(m.x, hull(m.a, m.b)) && within(m.y, hull(m.a, m.b)));
}

RC_GTEST_PROP(Interval, ExpLogAndEntropyHoldTheResultsOfAllMembers, ()) {
    const double p = *rc::gen::inRange(0, 1 << 20) * 0x1p-20,
                 q = *rc::gen::inRange(0, 1 << 20) * 0x1p-20;
    const Interval a = {std::min(p, q), std::max(p, q)};
    const long double x = a.lo + (a.hi - a.lo) * (*rc::gen::inRange(0, 9) / 8.0);
    RC_ASSERT(within(std::exp(x), exp(a)));
    if (x > 0) RC_ASSERT(within(std::log(x), log(a)));
    if (x > 0) RC_ASSERT(within(-x * std::log(x), entropy_term(a)));
}

RC_GTEST_PROP(Separation, IsAtMostOneExactlyWhereTheyMeet, ()) {
    const Members m = any_members();
    const double ratio = separation(m.a, m.b);
    // Radii are rounded up: a ratio of one may be off by a few roundings on either side.
    if (meet(m.a, m.b)) RC_ASSERT(ratio <= 1 + 0x1p-50);
    if (!meet(m.a, m.b)) RC_ASSERT(ratio >= 1 - 0x1p-50);
}

TEST(Log, OfWhatMayBeZeroHasNoLowerEnd) {
    EXPECT_EQ(log(Interval{0, 0.5}).lo, -infinite);
    EXPECT_FALSE(log(Interval{0, 0.5}).finite());
    EXPECT_TRUE(std::isnan(log(Interval{-1, -0.5}).lo));
}

}  // namespace
}  // namespace attest::law
