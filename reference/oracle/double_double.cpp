#include "reference/oracle/double_double_functions.hpp"

#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>

namespace attest::oracle {

namespace {

using Digits50 = boost::multiprecision::cpp_bin_float_50;

/// The first `parts` doubles of a constant, each of `bits` significant bits: so that their products
/// with a whole number of 53 - bits bits are exact.
template <std::size_t parts>
std::array<double, parts> slice(Digits50 value, int bits) {
    std::array<double, parts> out{};
    for (double& part : out) {
        const double nearest = value.convert_to<double>();
        const double unit = std::ldexp(1.0, std::ilogb(nearest) - bits + 1);
        part = std::trunc(nearest / unit) * unit;
        value -= Digits50(part);
    }
    return out;
}

DoubleDouble rounded(const Digits50& value) {
    const double hi = value.convert_to<double>();
    return {hi, Digits50(value - Digits50(hi)).convert_to<double>()};
}

DoubleDoubleConstants make_constants() {
    DoubleDoubleConstants c;
    const Digits50 ln2 = boost::multiprecision::log(Digits50(2));
    const Digits50 half = boost::multiprecision::acos(Digits50(0));
    c.log2_step = slice<4>(ln2 / exp_table_size, 33);
    c.half_pi = slice<7>(half, 21);
    c.steps_per_unit = Digits50(exp_table_size / ln2).convert_to<double>();
    c.quarters_per_radian = Digits50(1 / half).convert_to<double>();
    for (std::size_t i = 0; i < c.two_to_hi.size(); ++i) {
        const DoubleDouble power = rounded(boost::multiprecision::exp(ln2 * i / exp_table_size));
        c.two_to_hi[i] = power.hi;
        c.two_to_lo[i] = power.lo;
    }
    Digits50 factorial = 1;
    for (std::size_t i = 0; i < c.inverse_factorial.size(); ++i) {
        if (i > 0) factorial *= i;
        c.inverse_factorial[i] = rounded(1 / factorial);
    }
    return c;
}

}  // namespace

const DoubleDoubleConstants& double_double_constants() {
    static const DoubleDoubleConstants constants = make_constants();
    return constants;
}

DoubleDouble exp(DoubleDouble x) noexcept {
    return exp(x, double_double_constants());
}

// One step from y0 = log(hi) in double: with t = x exp(-y0) - 1, |t| < 2^-45, log x = y0 + log(1 +
// t), and t - t^2/2 + t^3/3 leaves 2^-180.
DoubleDouble log(DoubleDouble x) noexcept {
    const DoubleDoubleConstants& table = double_double_constants();
    const double y0 = std::log(x.hi);
    // Keep exp's argument in its range: x = 2^e f.
    const int e = std::abs(y0) > 500 ? std::ilogb(x.hi) : 0;
    const DoubleDouble f{std::ldexp(x.hi, -e), std::ldexp(x.lo, -e)};
    const double f0 = std::log(f.hi);
    const DoubleDouble t = f * exp(DoubleDouble(-f0)) - DoubleDouble(1);
    const DoubleDouble y = DoubleDouble(f0) + (t - DoubleDouble(t.hi * t.hi * (0.5 - t.hi / 3)));
    if (e == 0) return y;
    DoubleDouble scale;
    for (const double part : table.log2_step)
        scale = scale + DoubleDouble(static_cast<double>(e) * part * exp_table_size);
    return y + scale;
}

DoubleDouble tanh(DoubleDouble x) noexcept {
    return tanh(x, double_double_constants());
}

// x = k pi/2 + r, |r| < 0.79; the series to r^27/27! leaves less than 2^-106.
SineCosine sine_cosine(DoubleDouble x) noexcept {
    const DoubleDoubleConstants& table = double_double_constants();
    const double k = std::nearbyint(x.hi * table.quarters_per_radian);
    const DoubleDouble r = reduce(x, k, table.half_pi);
    const DoubleDouble r2 = r * r;
    DoubleDouble s = table.inverse_factorial[27], c = table.inverse_factorial[26];
    for (std::size_t n = 25; n >= 3; n -= 2) s = table.inverse_factorial[n] - s * r2;
    for (std::size_t n = 24; n >= 2; n -= 2) c = table.inverse_factorial[n] - c * r2;
    s = r - s * r2 * r;
    c = DoubleDouble(1) - c * r2;
    switch (static_cast<std::int64_t>(k) & 3) {
        case 0:
            return {s, c};
        case 1:
            return {c, -s};
        case 2:
            return {-s, -c};
        default:
            return {-c, s};
    }
}

}  // namespace attest::oracle
