#pragma once
// The three arithmetics the definition is computed in, behind one set of names, and what each one's
// errors are. The definition in attention.hpp is written once, over these.

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/bound/rounding.hpp"
#include "reference/oracle/double_double_sum.hpp"
#include "reference/oracle/own_error.hpp"

namespace attest::oracle {

using Exact = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_50::backend_type,
                                            boost::multiprecision::et_off>;

/// Sum of products x y, x and y in any of the types below.
template <typename Real>
class Sum {
public:
    template <typename A, typename B>
    void add_product(const A& a, const B& b) {
        total_ = total_ + Real(a) * Real(b);
    }
    void add(const Real& a) { total_ = total_ + a; }
    Real value() const { return total_; }

private:
    Real total_{0.0};
};

template <>
class Sum<DoubleDouble> : public DoubleDoubleSum {};

/// Functions and constants of one arithmetic.
template <typename Real>
struct Arithmetics;

template <>
struct Arithmetics<double> {
    static double exp(double x) { return std::exp(x); }
    static double log(double x) { return std::log(x); }
    static double tanh(double x) { return std::tanh(x); }
    static double sine(double x) { return std::sin(x); }
    static double cosine(double x) { return std::cos(x); }
    static std::pair<double, double> sine_cosine(double x) { return {sine(x), cosine(x)}; }
    static double nearest(double x) { return x; }
    /// The C library's functions are within 1 ulp; 2u is an ulp, 4u is twice that.
    static ArithmeticError error() {
        constexpr double u = 0x1p-53;
        return {.unit = u,
                .function = 4 * u,
                .sum = [](double n) { return bound::chain_error(n, 0x1p-53); },
                .underflow = 0x1p-1074,
                .weight_floor = 0x1p-1022,
                .range = 0x1p1000,
                .angle_range = 0x1p50};
    }
};

template <>
struct Arithmetics<DoubleDouble> {
    static DoubleDouble exp(DoubleDouble x) { return oracle::exp(x); }
    static DoubleDouble log(DoubleDouble x) { return oracle::log(x); }
    static DoubleDouble tanh(DoubleDouble x) { return oracle::tanh(x); }
    static DoubleDouble sine(DoubleDouble x) { return oracle::sine_cosine(x).sine; }
    static DoubleDouble cosine(DoubleDouble x) { return oracle::sine_cosine(x).cosine; }
    static SineCosine sine_cosine(DoubleDouble x) { return oracle::sine_cosine(x); }
    static double nearest(DoubleDouble x) { return x.hi + x.lo; }
    /// double_double.hpp. A low word below 2^-1074 is lost, up to seven times a product. exp stops
    /// at exp(-630) < 2^-908.
    static ArithmeticError error() {
        return {.unit = 0x1p-101,
                .function = 0x1p-97,
                .sum =
                    [](double n) {
                        const double g = bound::chain_error(4 * n, 0x1p-53);
                        return g * g;
                    },
                .underflow = 0x1p-1071,
                .weight_floor = 0x1p-908,
                .range = 0x1p900,
                .angle_range = 0x1p32};
    }
};

template <>
struct Arithmetics<Exact> {
    static Exact exp(const Exact& x) { return boost::multiprecision::exp(x); }
    static Exact log(const Exact& x) { return boost::multiprecision::log(x); }
    static Exact tanh(const Exact& x) { return boost::multiprecision::tanh(x); }
    static Exact sine(const Exact& x) { return boost::multiprecision::sin(x); }
    static Exact cosine(const Exact& x) { return boost::multiprecision::cos(x); }
    static std::pair<Exact, Exact> sine_cosine(const Exact& x) { return {sine(x), cosine(x)}; }
    static double nearest(const Exact& x) { return x.convert_to<double>(); }
    /// 168 bits, exponents of 31 bits: + - * / never underflow. The functions lose as many bits as
    /// reducing their argument costs: 2^-158 measured for exp at -620, 2^-136 for sin at 2^32. They
    /// are allowed 2^-130 (the test holds them to it against 100 digits), and an exp below the
    /// smallest double is not relied on at all.
    static ArithmeticError error() {
        return {.unit = 0x1p-167,
                .function = 0x1p-130,
                .sum = [](double n) { return bound::chain_error(n, 0x1p-167); },
                .underflow = 0,
                .weight_floor = std::numeric_limits<double>::denorm_min(),
                .range = std::numeric_limits<double>::max(),
                .angle_range = 0x1p32};
    }
};

}  // namespace attest::oracle
