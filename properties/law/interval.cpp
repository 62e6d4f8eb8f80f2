#include "properties/law/interval.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/bound/next.hpp"

namespace attest::law {

namespace {

using bound::next_down;
using bound::next_up;

/// glibc states at most one ulp for exp and log; four steps outward hold for any library this is
/// built with.
double down_library(double x) noexcept {
    return next_down(next_down(next_down(next_down(x))));
}
double up_library(double x) noexcept {
    return next_up(next_up(next_up(next_up(x))));
}

/// Of a normal double.
double power_of_two(int exponent) noexcept {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The member of the format next to x on the side of `towards`.
double neighbour(double x, Precision format, bool upwards) noexcept {
    if (format == Precision::f64) return upwards ? next_up(x) : next_down(x);
    // A power of two with the exponent of x is x without its significand's other bits.
    constexpr std::uint64_t exponent_bits = std::uint64_t{0x7ff} << 52;
    const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & exponent_bits);
    const FormatTraits t = traits(format);
    const double least = power_of_two(t.exponent_min);
    const double ulp = std::max(power, least) * power_of_two(1 - t.significand_bits);
    // Just below a power of two the spacing is half as wide; that of the smallest normals is not.
    const bool towards_zero = x != 0 && (x > 0) != upwards;
    const bool halves = towards_zero && std::abs(x) == power && power > least;
    const double step = halves ? ulp / 2 : ulp;
    return upwards ? x + step : x - step;
}

}  // namespace

Interval Interval::around(double centre, double radius) noexcept {
    if (radius == 0) return exactly(centre);
    return {next_down(centre - radius), next_up(centre + radius)};
}

double Interval::mid() const noexcept {
    if (lo == hi) return lo;
    if (lo == -infinite && hi == infinite) return 0;
    return lo / 2 + hi / 2;
}

double Interval::radius() const noexcept {
    if (lo == hi) return 0;
    const double centre = mid();
    return next_up(std::max(hi - centre, centre - lo));
}

bool Interval::finite() const noexcept {
    return std::isfinite(lo) && std::isfinite(hi);
}

bool meet(const Interval& a, const Interval& b) noexcept {
    return a.lo <= b.hi && b.lo <= a.hi;
}

double separation(const Interval& a, const Interval& b) noexcept {
    if (std::isnan(a.lo) || std::isnan(a.hi) || std::isnan(b.lo) || std::isnan(b.hi))
        return infinite;
    const double radii = a.radius() + b.radius();
    if (radii == infinite) return 0;
    const double distance = std::abs(a.mid() - b.mid());
    if (std::isnan(distance) || distance == 0) return 0;
    return distance / radii;
}

Interval preimage(double observed, Precision format) noexcept {
    if (std::isnan(observed)) return {observed, observed};
    const double largest = traits(format).max_finite;
    // All that lies half an ulp or more beyond the largest number rounds to infinity.
    const double overflow = format == Precision::f64
                                ? largest
                                : largest + (largest - neighbour(largest, format, false)) / 2;
    if (observed == infinite) return {overflow, infinite};
    if (observed == -infinite) return {-infinite, -overflow};
    // Doubles hold no number between two neighbours of f64: a whole step outward encloses the half.
    if (format == Precision::f64) return {next_down(observed), next_up(observed)};
    const double below = neighbour(observed, format, false);
    const double above = neighbour(observed, format, true);
    return {observed + (below - observed) / 2, observed + (above - observed) / 2};
}

Interval truth_of(double observed, double bound, Precision format) noexcept {
    const Interval unrounded = preimage(observed, format);
    if (bound == infinite && !std::isnan(observed)) return {-infinite, infinite};
    return unrounded + Interval::around(0, bound);
}

Interval operator+(const Interval& a, const Interval& b) noexcept {
    return {next_down(a.lo + b.lo), next_up(a.hi + b.hi)};
}

Interval operator-(const Interval& a, const Interval& b) noexcept {
    return {next_down(a.lo - b.hi), next_up(a.hi - b.lo)};
}

Interval operator*(const Interval& a, const Interval& b) noexcept {
    // 0 * inf stands for a product with a factor that is zero: zero.
    const auto times = [](double x, double y) { return x == 0 || y == 0 ? 0.0 : x * y; };
    const std::array<double, 4> ends = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo),
                                        times(a.hi, b.hi)};
    for (const double end : ends)
        if (std::isnan(end)) return {end, end};
    const auto [least, most] = std::minmax_element(ends.begin(), ends.end());
    return {next_down(*least), next_up(*most)};
}

Interval operator/(const Interval& a, const Interval& b) noexcept {
    if (b.contains(0)) return {-infinite, infinite};
    return a * Interval{next_down(1 / b.hi), next_up(1 / b.lo)};
}

Interval exp(const Interval& a) noexcept {
    return {std::max(0.0, down_library(std::exp(a.lo))), up_library(std::exp(a.hi))};
}

Interval log(const Interval& a) noexcept {
    if (!(a.hi > 0)) return {std::numeric_limits<double>::quiet_NaN(), infinite};
    return {a.lo > 0 ? down_library(std::log(a.lo)) : -infinite, up_library(std::log(a.hi))};
}

Interval square(const Interval& a) noexcept {
    const double least = a.contains(0) ? 0 : std::min(std::abs(a.lo), std::abs(a.hi));
    const double most = std::max(std::abs(a.lo), std::abs(a.hi));
    return {std::max(0.0, next_down(least * least)), next_up(most * most)};
}

Interval intersection(const Interval& a, const Interval& b) noexcept {
    return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

Interval hull(const Interval& a, const Interval& b) noexcept {
    return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Interval entropy_term(const Interval& a) noexcept {
    const auto value = [](double x) { return x > 0 ? -x * std::log(x) : 0.0; };
    const double peak = std::exp(-1.0);
    const double at_lo = value(a.lo), at_hi = value(a.hi);
    // It rises up to 1/e and falls from there on.
    const double most = a.contains(peak) ? peak : std::max(at_lo, at_hi);
    return {down_library(std::min(at_lo, at_hi)), up_library(most)};
}

}  // namespace attest::law
