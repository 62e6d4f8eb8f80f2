#include "reference/bound/expected.hpp"

#include <cmath>

#include "reference/bound/next.hpp"

namespace attest::bound {

namespace {

/// One step outward costs less than deciding whether the addition in double was exact, and only
/// ever widens: the ends are computed in double from values that are themselves doubles.
bool within(double observed, double value, double radius, Precision format) {
    // radius 0 promises the exact value; stepping outward would admit its neighbours in f64.
    const double low = radius == 0 ? value : next_down(value - radius);
    const double high = radius == 0 ? value : next_up(value + radius);
    return observed >= round_to(low, format) && observed <= round_to(high, format);
}

}  // namespace

Agreement judge(double observed, const ExpectedElement& expected, Precision format) noexcept {
    if (std::isnan(expected.value)) {
        const bool met =
            expected.bound == infinite ? !std::isfinite(observed) : std::isnan(observed);
        return met ? Agreement::agrees : Agreement::disagrees;
    }
    if (std::isinf(expected.value))
        return observed == expected.value ? Agreement::agrees : Agreement::disagrees;
    if (expected.bound == infinite) return Agreement::agrees;
    // A bound that is no number would be a fault of the reference, never of the kernel.
    if (!(expected.error < infinite) || std::isnan(expected.bound)) return Agreement::undecided;
    const double inner = expected.bound - expected.error;
    if (inner >= 0 && within(observed, expected.value, inner, format)) return Agreement::agrees;
    if (!within(observed, expected.value, expected.bound + expected.error, format))
        return Agreement::disagrees;
    return Agreement::undecided;
}

double error_ratio(double observed, const ExpectedElement& expected, Precision format) noexcept {
    if (!std::isfinite(expected.value))
        return judge(observed, expected, format) == Agreement::agrees ? 0 : infinite;
    if (expected.bound == infinite || expected.error == infinite) return 0;
    // An overflow that the interval admits has a distance no number states: the whole bound is
    // used.
    if (!std::isfinite(observed))
        return judge(observed, expected, format) == Agreement::agrees ? 1 : infinite;
    const double distance = std::abs(observed - expected.value);
    if (distance == 0) return 0;
    // Rounding x to the format moves it by at most u |x|, or half a subnormal step.
    const FormatTraits t = traits(format);
    const double radius = expected.bound + expected.error;
    const double rounding = t.unit_roundoff * (std::abs(expected.value) + radius) +
                            std::ldexp(1.0, t.exponent_min - t.significand_bits);
    return distance / (radius + rounding);
}

}  // namespace attest::bound
