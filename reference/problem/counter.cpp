// Random numbers by position instead of by state: element i of a stream is a function of (seed,
// stream, i) alone. Only operations that IEEE 754 rounds correctly are used (no libm logarithm, no
// contraction), so every machine draws the same bits.

#include "reference/problem/counter.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace attest {
namespace {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014; Stafford's mix 13): a bijection of 64
/// bits.
constexpr std::uint64_t mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;  // 2^64 / phi, SplitMix64's increment

/// ln x for x in (0, 1): x = m 2^e with m in [sqrt(1/2), sqrt(2)), then 2 atanh((m-1)/(m+1)). The
/// series' first term left out is below 2 * 0.1716^27 / 27 < 1e-22.
double natural_log(double x) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    auto exponent = static_cast<int>(bits >> 52) - 1023;
    double m = std::bit_cast<double>((bits & ((std::uint64_t{1} << 52) - 1)) |
                                     (std::uint64_t{1023} << 52));
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent += 1;
    }
    const double s = (m - 1.0) / (m + 1.0), square = s * s;
    double sum = 0.0;
    for (int odd = 25; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
    return 2.0 * s * sum + exponent * 0.6931471805599453;
}

double polynomial(const std::array<double, 8>& coefficients, double x) noexcept {
    double sum = 0.0;
    for (std::size_t i = coefficients.size(); i-- > 0;) sum = sum * x + coefficients[i];
    return sum;
}

/// The quantile of the standard normal distribution: Wichura 1988, algorithm AS 241 (PPND16), about
/// 1 part in 10^16. p in (0, 1).
double normal_quantile(double p) noexcept {
    static constexpr std::array<double, 8>
        a = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
             1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
             3.3430575583588128105e+4, 2.5090809287301226727e+3},
        b = {1.0,
             4.2313330701600911252e+1,
             6.8718700749205790830e+2,
             5.3941960214247511077e+3,
             2.1213794301586595867e+4,
             3.9307895800092710610e+4,
             2.8729085735721942674e+4,
             5.2264952788528545610e+3},
        c = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
             3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
             2.27238449892691845833e-2, 7.74545014278341407640e-4},
        d = {1.0,
             2.05319162663775882187e0,
             1.67638483018380384940e0,
             6.89767334985100004550e-1,
             1.48103976427480074590e-1,
             1.51986665636164571966e-2,
             5.47593808499534494600e-4,
             1.05075007164441684324e-9},
        e = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
             2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
             2.71155556874348757815e-5, 2.01033439929228813265e-7},
        f = {1.0,
             5.99832206555887937690e-1,
             1.36929880922735805310e-1,
             1.48753612908506148525e-2,
             7.86869131145613259100e-4,
             1.84631831751005468180e-5,
             1.42151175831644588870e-7,
             2.04426310338993978564e-15};
    const double q = p - 0.5;
    // One polynomial for |q| <= 0.425, in 0.425^2 - q^2 = 0.180625 - q^2.
    if (std::fabs(q) <= 0.425) {
        const double r = 0.180625 - q * q;
        return q * polynomial(a, r) / polynomial(b, r);
    }
    const double r = std::sqrt(-natural_log(q < 0 ? p : 1.0 - p));
    // Two of the root of -log p: up to 5.0 about 1.6, and from there.
    const double tail = r <= 5.0 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6)
                                 : polynomial(e, r - 5.0) / polynomial(f, r - 5.0);
    return q < 0 ? -tail : tail;
}

}  // namespace

std::uint64_t counter_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
    const std::uint64_t start = mix(mix(seed + golden) ^ mix(stream * golden + 1));
    return mix(start + (index + 1) * golden);
}

double counter_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
    return static_cast<double>(counter_bits(seed, stream, index) >> 11) * 0x1p-53;
}

double counter_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
    // (k + 1/2) 2^-52: exact, never 0 nor 1, and symmetric about 1/2.
    const auto k = static_cast<double>(counter_bits(seed, stream, index) >> 12);
    return normal_quantile((k + 0.5) * 0x1p-52);
}

}  // namespace attest
