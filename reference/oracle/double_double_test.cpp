// The double-double functions against 50 digits: the errors double_double.hpp claims.

#include "reference/oracle/double_double.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <random>

#include "reference/oracle/real.hpp"

namespace attest::oracle {
namespace {

namespace mp = boost::multiprecision;
using Wider = mp::number<mp::cpp_bin_float_100::backend_type, mp::et_off>;

Wider wide(DoubleDouble x) {
    return Wider(x.hi) + Wider(x.lo);
}
Wider wide(const Exact& x) {
    return Wider(x);
}

/// |got - want| / |want|
double relative(const Wider& got, const Wider& want) {
    if (want == 0) return mp::abs(got).convert_to<double>();
    return Wider(mp::abs(got - want) / mp::abs(want)).convert_to<double>();
}

class NumberDraw {
public:
    double uniform(double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(engine_);
    }
    DoubleDouble number(double low, double high) {
        const double hi = uniform(low, high);
        return fast_two_sum(hi, uniform(-1, 1) * std::abs(hi) * 0x1p-54);
    }

private:
    std::mt19937_64 engine_{11};
};

TEST(double_double, exact_transformations_lose_nothing) {
    NumberDraw draw;
    for (int i = 0; i < 20000; ++i) {
        const double a = draw.uniform(-1, 1) * std::ldexp(1.0, i % 60);
        const double b = draw.uniform(-1, 1);
        EXPECT_EQ(wide(two_sum(a, b)), Wider(a) + Wider(b));
        EXPECT_EQ(wide(two_prod(a, b)), Wider(a) * Wider(b));
    }
}

TEST(double_double, operations_are_within_the_unit) {
    NumberDraw draw;
    const double unit = Arithmetics<DoubleDouble>::error().unit;
    double worst = 0;
    for (int i = 0; i < 50000; ++i) {
        const DoubleDouble a = draw.number(-4, 4), b = draw.number(-4, 4);
        worst = std::max({worst, relative(wide(a * b), wide(a) * wide(b)),
                          relative(wide(a / b), wide(a) / wide(b)),
                          relative(wide(a + b), wide(a) + wide(b)),
                          relative(wide(a - b), wide(a) - wide(b))});
    }
    EXPECT_LE(worst, unit);
    EXPECT_GE(worst, unit / 256);  // the claim is not far from what happens
}

template <typename Real>
Real make(DoubleDouble x);
template <>
DoubleDouble make<DoubleDouble>(DoubleDouble x) {
    return x;
}
template <>
Exact make<Exact>(DoubleDouble x) {
    return Exact(x.hi) + Exact(x.lo);
}

template <typename Real>
void functions_are_within_their_error(int draws) {
    using A = Arithmetics<Real>;
    NumberDraw draw;
    const double claim = A::error().function;
    double e = 0, l = 0, t = 0, s = 0;
    for (int i = 0; i < draws; ++i) {
        const DoubleDouble x = draw.number(-620, 0);
        e = std::max(e, relative(wide(A::exp(make<Real>(x))), mp::exp(wide(x))));
        const DoubleDouble small = draw.number(-0.01, 0.01);
        e = std::max(e, relative(wide(A::exp(make<Real>(small))), mp::exp(wide(small))));
        DoubleDouble y = draw.number(0.5, 2);
        const int scale = i % 200;
        y = {std::ldexp(y.hi, scale), std::ldexp(y.lo, scale)};
        const Wider logarithm = mp::log(wide(y));
        l = std::max(
            l, Wider(mp::abs(wide(A::log(make<Real>(y))) - logarithm) / (1 + mp::abs(logarithm)))
                   .template convert_to<double>());
        const DoubleDouble z = draw.number(-45, 45);
        t = std::max(t, Wider(mp::abs(wide(A::tanh(make<Real>(z))) - mp::tanh(wide(z))))
                            .template convert_to<double>());
        t = std::max(t, Wider(mp::abs(wide(A::tanh(make<Real>(small))) - mp::tanh(wide(small))))
                            .template convert_to<double>());
        const DoubleDouble angle = draw.number(-0x1p32, 0x1p32);
        s = std::max(s, Wider(mp::abs(wide(A::sine(make<Real>(angle))) - mp::sin(wide(angle))))
                            .template convert_to<double>());
        s = std::max(s, Wider(mp::abs(wide(A::cosine(make<Real>(angle))) - mp::cos(wide(angle))))
                            .template convert_to<double>());
    }
    EXPECT_LE(e, claim) << "exp";
    EXPECT_LE(l, claim) << "log";
    EXPECT_LE(t, claim) << "tanh";
    EXPECT_LE(s, claim) << "sin, cos";
    std::printf("exp 2^%.1f log 2^%.1f tanh 2^%.1f sin 2^%.1f\n", std::log2(e), std::log2(l),
                std::log2(t), std::log2(s));
}

TEST(double_double, functions_are_within_their_error) {
    functions_are_within_their_error<DoubleDouble>(4000);
}

TEST(exact, functions_are_within_their_error) {
    functions_are_within_their_error<Exact>(600);
}

TEST(double_double, exp_of_zero_is_one) {
    EXPECT_EQ(exp(DoubleDouble(0.0)).hi, 1.0);
    EXPECT_EQ(exp(DoubleDouble(0.0)).lo, 0.0);
    EXPECT_EQ(exp(DoubleDouble(-1e9)).hi, 0.0);
}

}  // namespace
}  // namespace attest::oracle
