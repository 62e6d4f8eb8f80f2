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

}  // namespace attest::diagnosis
