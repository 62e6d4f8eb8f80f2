#include "properties/law/variance_band.hpp"

#include <cmath>

namespace attest::law {

// The scores Z of different keys of one query are independent given the query, symmetric, and sums
// of independent terms. With signs: E exp(lZ) = prod cosh(l a_c) <= exp(l^2/2), E Z^2 = 1, E Z^4 <=
// 3. With normal keys rounded to the format, |k^| is within a factor 1 + u of |k|: E exp(lZ) <=
// exp(r l^2/2), E Z^2 >= 1/r, E Z^4 <= 3 r^2, where r = (1+u)^2.
//
// Upper tail: E exp(t Z^2) = E_g exp(sqrt(2t) g Z) <= (1 - 2tr)^(-1/2), so with t r = a/(2(1+a))
//   P(sum Z^2 >= N r (1+a)) <= exp(-N (a - log(1+a)) / 2).
// Lower tail: exp(-x) <= 1 - x + x^2/2 gives E exp(-t Z^2) <= exp(-t/r + 3 t^2 r^2 / 2); t = a/(3
// r^3)
//   P(sum Z^2 <= N (1-a)/r) <= exp(-N a^2 / (6 r^4)).
// Each is set to half the rate. Errors e of the readings move the root of the sum of
// squares by at most |e| (triangle inequality).
VarianceBand band_of(const ScoreSample& sample, double rate) {
    const double n = static_cast<double>(sample.count);
    const double need = std::log(2 / rate) / n;
    const double r = (1 + sample.rounding) * (1 + sample.rounding);
    double above = 1;
    while ((above - std::log1p(above)) / 2 < need) above *= 2;
    for (double step = above / 2; step > 0x1p-20; step /= 2)
        if ((above - step - std::log1p(above - step)) / 2 >= need) above -= step;
    const double below = r * r * std::sqrt(6 * need);
    const double noise = std::sqrt(sample.noise_squares / n);
    const double low = below < 1 ? std::sqrt((1 - below) / r) - noise : 0;
    const double high = std::sqrt(r * (1 + above)) + noise;
    return {low > 0 ? low * low : 0, high * high};
}

}  // namespace attest::law
