#pragma once
// Enclosures of real numbers. A law compares numbers a kernel returned; what it knows of each is an
// interval that surely holds the number the kernel was after: the reals that round to what was
// observed (rounding is monotone, so they are an interval), widened by the bound a kernel of the
// declared numerics may be off by before that rounding. Two numbers that a law says are equal are
// violated where their intervals do not meet.
//
// Every operation rounds outward: the exact result of any two members lies in the interval
// returned. Intervals with a NaN end meet nothing.

#include "reference/bound/expected.hpp"
#include "reference/bound/rounding.hpp"
#include "reference/problem/precision.hpp"

namespace attest::law {

using bound::evaluation;

struct Interval {
    double lo = 0, hi = 0;

    static Interval exactly(double x) noexcept { return {x, x}; }
    /// [centre - radius, centre + radius], rounded outward; radius >= 0.
    static Interval around(double centre, double radius) noexcept;

    double mid() const noexcept;
    double radius() const noexcept;  ///< >= the distance from mid() to either end
    bool finite() const noexcept;    ///< both ends are
    bool contains(double x) const noexcept { return lo <= x && x <= hi; }
    bool operator==(const Interval&) const = default;
};

/// Whether some number lies in both; false where an end is NaN.
bool meet(const Interval& a, const Interval& b) noexcept;

/// |distance of the middles| / (sum of the radii): at most 1 where they meet, infinite where one of
/// them is NaN or where both are points that differ.
double separation(const Interval& a, const Interval& b) noexcept;

/// The real numbers that round to nearest even to `observed`, a member of the format; the ends may
/// be among them or not.
Interval preimage(double observed, Precision format) noexcept;

/// Where the truth lies, given that a kernel's number before its last rounding is within
/// `bound` of it.
Interval truth_of(double observed, double bound, Precision format) noexcept;

Interval operator+(const Interval& a, const Interval& b) noexcept;
Interval operator-(const Interval& a, const Interval& b) noexcept;
Interval operator*(const Interval& a, const Interval& b) noexcept;
/// Everything where b holds zero.
Interval operator/(const Interval& a, const Interval& b) noexcept;
Interval exp(const Interval& a) noexcept;
Interval log(const Interval& a) noexcept;  ///< of its positive part; [-inf, ..] where lo <= 0
Interval square(const Interval& a) noexcept;
Interval intersection(const Interval& a, const Interval& b) noexcept;  ///< may come out empty
Interval hull(const Interval& a, const Interval& b) noexcept;

/// -x log x, continuous at 0, for a within [0, 1]: the summand of the entropy.
Interval entropy_term(const Interval& a) noexcept;

}  // namespace attest::law
