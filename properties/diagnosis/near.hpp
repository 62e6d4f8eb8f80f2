#pragma once
// A number and how far a kernel of declared numerics may be from it: what the model of a backward
// pass (backward_model.hpp) is computed in, whatever it is made to compute.

#include <cmath>

namespace attest::diagnosis {

struct Near {
    double value = 0, error = 0;
};

inline Near operator+(Near a, Near b) {
    return {a.value + b.value, a.error + b.error};
}
inline Near operator-(Near a) {
    return {-a.value, a.error};
}
inline Near operator-(Near a, Near b) {
    return a + -b;
}
/// An exact 0 times a number is one, however little is known of that.
inline Near operator*(Near a, Near b) {
    if (a.value == 0 && a.error == 0 && std::isfinite(b.value)) return {};
    if (b.value == 0 && b.error == 0 && std::isfinite(a.value)) return {};
    return {a.value * b.value,
            std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error};
}
inline Near operator*(double exact, Near a) {
    return Near{exact, 0} * a;
}
/// Its largest size.
inline double most(Near a) {
    return std::abs(a.value) + a.error;
}
/// Once more rounded: `unit` of its size, and `absolute` where it underflows.
inline Near rounded(Near a, double unit, double absolute) {
    a.error += unit * most(a) + absolute;
    return a;
}

/// a - b, of which and other numbers a sum may be taken in any order: 1.05 for the rounding of a
/// partial sum and products of errors. Without b there is none.
inline Near taken_off(Near a, Near b, double unit) {
    if (most(b) == 0) return a;
    return {a.value - b.value, a.error + b.error + 1.05 * unit * (most(a) + most(b))};
}

}  // namespace attest::diagnosis
