// The vectorised loops, on every instruction set this machine has, against exact sums.

#include "reference/oracle/lanes.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "hwy/targets.h"
#include "reference/oracle/real.hpp"

namespace attest {
namespace {

namespace mp = boost::multiprecision;

/// Runs `check` once an instruction set.
template <typename Check>
void on_every_target(Check check) {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().DeInit();
        check();
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
}

struct Draw {
    std::mt19937_64 engine{5};
    double uniform(double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(engine);
    }
    std::vector<double> many(std::int64_t n) {
        std::vector<double> x(static_cast<std::size_t>(n));
        for (double& each : x) each = uniform(-2, 2);
        return x;
    }
};

double distance(const Exact& a, const Exact& b) {
    return Exact(mp::abs(Exact(a - b))).convert_to<double>();
}

TEST(lanes, dots_are_within_the_sum_error) {
    on_every_target([] {
        Draw draw;
        const std::int64_t dim = 37, n = 48;
        const std::vector<double> k = draw.many(dim * n), k_lo_raw = draw.many(dim * n);
        const std::vector<double> q = draw.many(dim), q_lo_raw = draw.many(dim);
        std::vector<double> k_lo = k_lo_raw, q_lo = q_lo_raw;
        for (double& x : k_lo) x *= 0x1p-55;
        for (double& x : q_lo) x *= 0x1p-55;
        std::vector<double> dot(48), size(48), hi(48), lo(48);
        const auto plain = Arithmetics<double>::error(), wide = Arithmetics<DoubleDouble>::error();
        for (const bool pairs : {false, true}) {
            const TransposedKeys keys{k.data(), pairs ? k_lo.data() : nullptr, dim, n};
            dots(keys, q.data(), 0, n, dot.data(), size.data());
            dots(keys, q.data(), pairs ? q_lo.data() : nullptr, 0, n, hi.data(), lo.data(),
                 nullptr);
            for (std::size_t j = 0; j < 48; ++j) {
                Exact truth = 0, magnitude = 0, high_words = 0;
                for (std::size_t c = 0; c < 37; ++c) {
                    const std::size_t at = c * 48 + j;
                    const Exact x = Exact(q[c]) + (pairs ? Exact(q_lo[c]) : Exact(0));
                    const Exact y = Exact(k[at]) + (pairs ? Exact(k_lo[at]) : Exact(0));
                    truth += x * y;
                    high_words += Exact(q[c]) * Exact(k[at]);
                    magnitude += mp::abs(Exact(x * y));
                }
                const double a = magnitude.convert_to<double>();
                EXPECT_NEAR(size[j], a, 1e-13 * a);
                EXPECT_LE(distance(Exact(hi[j]) + Exact(lo[j]), truth), wide.sum(dim) * a);
                EXPECT_LE(distance(Exact(dot[j]), high_words), plain.sum(dim) * a);
            }
        }
    });
}

TEST(lanes, exponentials_are_within_their_error) {
    on_every_target([] {
        Draw draw;
        double worst = 0, worst_wide = 0;
        for (int round = 0; round < 150; ++round) {
            std::vector<double> x(16), w(16), lo(16);
            for (double& each : x) each = draw.uniform(round % 3 == 0 ? -700 : -5, 3);
            x[15] = -std::numeric_limits<double>::infinity();
            const DoubleDouble top{3.0, 0x1p-60};
            std::vector<double> hi = x;
            for (std::size_t j = 0; j < 15; ++j) lo[j] = draw.uniform(-1, 1) * 0x1p-56;
            const std::vector<double> x_lo = lo;
            const double sum = exponentials(x.data(), 3.0, 16, w.data());
            const DoubleDouble wide_sum = exponentials(top, 16, hi.data(), lo.data());
            Exact total = 0, wide_total = 0;
            for (std::size_t j = 0; j < 15; ++j) {
                // The subtraction in double is allowed for apart from the function.
                const Exact truth = mp::exp(Exact(x[j] - 3.0));
                worst = std::max(worst, distance(Exact(w[j]), truth) / truth.convert_to<double>());
                const Exact argument = Exact(x[j]) + Exact(x_lo[j]) - Exact(top.hi) - Exact(top.lo);
                const Exact wide = mp::ldexp(Exact(mp::exp(argument)), weight_shift);
                worst_wide = std::max(worst_wide, distance(Exact(hi[j]) + Exact(lo[j]), wide) /
                                                      wide.convert_to<double>());
                total += truth;
                wide_total += wide;
            }
            EXPECT_EQ(w[15], 0);
            EXPECT_EQ(hi[15], 0);
            EXPECT_NEAR(sum / total.convert_to<double>(), 1, 1e-14);
            EXPECT_LE(distance(Exact(wide_sum.hi) + Exact(wide_sum.lo), wide_total) /
                          wide_total.convert_to<double>(),
                      0x1p-97);
        }
        EXPECT_LE(worst, Arithmetics<double>::error().function);
        EXPECT_LE(worst_wide, Arithmetics<DoubleDouble>::error().function);
        std::printf("exp: double %.2f units, double-double 2^%.1f\n", worst * 0x1p53,
                    std::log2(worst_wide));
    });
}

TEST(lanes, combine_and_column_sums_are_sums_over_visible_keys) {
    on_every_target([] {
        Draw draw;
        const std::int64_t stride = 40, keys = 9;
        const std::vector<double> v = draw.many(stride * keys), centre = draw.many(stride);
        const std::vector<std::int64_t> visible = {0, 2, 3, 7};
        const std::vector<double> w = {0.5, 0.25, 0.125, 2};
        const std::vector<double> w_lo = {0, 0x1p-60, 0, 0x1p-54};
        std::vector<double> out(40), wide(40), spread(40), plain(40), mass(40), low(40), high(40);
        combine(v.data(), stride, visible, w.data(), out.data());
        const DoubleDouble sum{3.0, 0x1p-55};
        combine(v.data(), stride, visible, w.data(), w_lo.data(), sum, wide.data());
        const ColumnTask task{v.data(), stride, visible, w, w, w, centre.data(), true};
        column_sums(task, {spread.data(), plain.data(), mass.data(), low.data(), high.data()});
        for (std::size_t c = 0; c < 40; ++c) {
            Exact total = 0, wide_total = 0;
            double s = 0, m = 0, least = 1e9, most = -1e9;
            for (std::size_t j = 0; j < 4; ++j) {
                const double x = v[static_cast<std::size_t>(visible[j] * stride) + c];
                total += Exact(w[j]) * Exact(x);
                wide_total += (Exact(w[j]) + Exact(w_lo[j])) * Exact(x);
                s += w[j] * std::abs(x - centre[c]);
                m += w[j] * std::abs(x);
                least = std::min(least, x);
                most = std::max(most, x);
            }
            EXPECT_LE(distance(Exact(out[c]), total), 4 * 0x1p-53 * m);
            const Exact quotient = wide_total / (Exact(sum.hi) + Exact(sum.lo));
            EXPECT_LE(distance(Exact(wide[c]), quotient),
                      0x1.001p-53 * std::abs(quotient.convert_to<double>()) + 0x1p-98 * m);
            EXPECT_NEAR(spread[c], s, 1e-14);
            EXPECT_NEAR(plain[c], m, 1e-14);
            EXPECT_EQ(mass[c], plain[c]);
            EXPECT_EQ(low[c], least);
            EXPECT_EQ(high[c], most);
        }
    });
}

}  // namespace
}  // namespace attest
