// The vectorised loops, on every instruction set this machine has, against exact sums.

#include "reference/oracle/lanes.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "hwy/targets.h"
#include "reference/oracle/real.hpp"

namespace attest::oracle {
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

struct LaneDraw {
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

TEST(lanes, products_are_within_the_sum_error) {
    on_every_target([] {
        LaneDraw draw;
        for (const std::int64_t rows : {1, 3, 4, 8}) {
            const std::int64_t inner = 37, width = 80;
            const std::vector<double> a = draw.many(rows * inner), b = draw.many(inner * width);
            const std::vector<double> start = draw.many(rows * width);
            std::vector<double> out = start;
            const std::vector<float> a_single(a.begin(), a.end()), b_single(b.begin(), b.end());
            std::vector<float> single(start.begin(), start.end());
            add_product(Product<double>{rows, inner, width, a.data(), inner, b.data(), width,
                                        out.data(), width});
            add_product(Product<float>{rows, inner, width, a_single.data(), inner, b_single.data(),
                                       width, single.data(), width});
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t x = 0; x < width; ++x) {
                    const std::size_t at = static_cast<std::size_t>(r * width + x);
                    Exact truth = start[at], size = std::abs(start[at]);
                    for (std::int64_t i = 0; i < inner; ++i) {
                        const Exact term = Exact(a[static_cast<std::size_t>(r * inner + i)]) *
                                           b[static_cast<std::size_t>(i * width + x)];
                        truth += term;
                        size += mp::abs(term);
                    }
                    const double mass = size.convert_to<double>();
                    const auto plain = Arithmetics<double>::error();
                    ASSERT_LE(distance(Exact(out[at]), truth), plain.sum(inner + 1) * mass);
                    ASSERT_LE(distance(Exact(single[at]), truth),
                              bound::chain_error(inner + 4, 0x1p-24) * mass);
                }
        }
    });
}

TEST(lanes, dots_are_within_the_sum_error) {
    on_every_target([] {
        LaneDraw draw;
        const std::int64_t dim = 37, n = 64;
        const std::vector<double> k = draw.many(dim * n), k_lo_raw = draw.many(dim * n);
        const std::vector<double> q = draw.many(dim), q_lo_raw = draw.many(dim);
        std::vector<double> k_lo = k_lo_raw, q_lo = q_lo_raw;
        for (double& x : k_lo) x *= 0x1p-55;
        for (double& x : q_lo) x *= 0x1p-55;
        std::vector<double> hi(64), lo(64);
        const auto wide = Arithmetics<DoubleDouble>::error();
        for (const bool pairs : {false, true}) {
            const TiledKeys keys{k.data(), pairs ? k_lo.data() : nullptr, dim};
            dots(keys, q.data(), pairs ? q_lo.data() : nullptr, 0.75, 0, n, hi.data(), lo.data());
            for (std::int64_t j = 0; j < n; ++j) {
                Exact truth = 0, magnitude = 0;
                for (std::int64_t c = 0; c < dim; ++c) {
                    const std::size_t at = static_cast<std::size_t>(TiledKeys::at(dim, j, c));
                    const std::size_t of = static_cast<std::size_t>(c);
                    const Exact x = Exact(q[of]) + (pairs ? Exact(q_lo[of]) : Exact(0));
                    const Exact y = Exact(k[at]) + (pairs ? Exact(k_lo[at]) : Exact(0));
                    truth += 0.75 * x * y;
                    magnitude += mp::abs(Exact(x * y));
                }
                const std::size_t at = static_cast<std::size_t>(j);
                EXPECT_LE(distance(Exact(hi[at]) + Exact(lo[at]), truth),
                          wide.sum(dim) * magnitude.convert_to<double>());
            }
        }
    });
}

TEST(lanes, exponentials_are_within_their_error) {
    on_every_target([] {
        LaneDraw draw;
        double worst = 0, worst_wide = 0;
        for (int round = 0; round < 150; ++round) {
            std::vector<double> x(16), w(16), lo(16);
            for (double& each : x) each = draw.uniform(round % 3 == 0 ? -700 : -5, 3);
            x[15] = -infinite;
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

TEST(lanes, combine_is_the_quotient_of_sums) {
    on_every_target([] {
        LaneDraw draw;
        const std::int64_t stride = 48, keys = 9;
        const std::vector<double> v = draw.many(stride * keys);
        const std::vector<std::int64_t> visible = {0, 2, 3, 7};
        const std::vector<double> w = {0.5, 0.25, 0.125, 2};
        const std::vector<double> w_lo = {0, 0x1p-60, 0, 0x1p-54};
        std::vector<double> wide(48);
        const DoubleDouble sum{3.0, 0x1p-55};
        combine(v.data(), stride, visible, w.data(), w_lo.data(), sum, wide.data());
        for (std::size_t c = 0; c < 48; ++c) {
            Exact total = 0;
            double mass = 0;
            for (std::size_t j = 0; j < 4; ++j) {
                const double x = v[static_cast<std::size_t>(visible[j] * stride) + c];
                total += (Exact(w[j]) + Exact(w_lo[j])) * Exact(x);
                mass += w[j] * std::abs(x);
            }
            const Exact quotient = total / (Exact(sum.hi) + Exact(sum.lo));
            EXPECT_LE(distance(Exact(wide[c]), quotient),
                      0x1.001p-53 * std::abs(quotient.convert_to<double>()) + 0x1p-98 * mass);
        }
    });
}

template <typename T>
void expect_spread() {
    LaneDraw draw;
    for (const std::int64_t rows : {1, 3, 4, 8}) {
        const std::int64_t keys = 20, stride = 48;
        const auto some = [&](std::int64_t n) {
            const std::vector<double> x = draw.many(n);
            return std::vector<T>(x.begin(), x.end());
        };
        const std::vector<T> v = some(keys * stride), centre = some(rows * stride);
        std::vector<T> centred = some(rows * keys), plain = some(rows * keys);
        for (std::vector<T>* x : {&centred, &plain})
            for (T& each : *x) each = std::abs(each);
        std::vector<double> spread(static_cast<std::size_t>(rows * stride), 1.0), size = spread;
        add_spread(Spread<T>{rows, keys, stride, v.data(), centred.data(), plain.data(), keys,
                             centre.data(), spread.data(), size.data()});
        const double allowed = 24 * std::numeric_limits<T>::epsilon();
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < stride; ++c) {
                const std::size_t at = static_cast<std::size_t>(r * stride + c);
                double of_spread = 1, of_size = 1;
                for (std::int64_t j = 0; j < keys; ++j) {
                    const double x = v[static_cast<std::size_t>(j * stride + c)];
                    const std::size_t weight = static_cast<std::size_t>(r * keys + j);
                    of_spread += static_cast<double>(centred[weight]) *
                                 std::abs(x - static_cast<double>(centre[at]));
                    of_size += static_cast<double>(plain[weight]) * std::abs(x);
                }
                ASSERT_NEAR(spread[at], of_spread, allowed * of_spread);
                ASSERT_NEAR(size[at], of_size, allowed * of_size);
            }
    }
}

TEST(lanes, spreads_are_sums_over_keys) {
    on_every_target([] {
        expect_spread<float>();
        expect_spread<double>();
    });
}

TEST(lanes, numbers_are_scaled_and_measured) {
    on_every_target([] {
        LaneDraw draw;
        for (std::size_t n = 0; n < 40; ++n) {
            const std::vector<double> x = draw.many(static_cast<std::int64_t>(n));
            const std::int64_t count = static_cast<std::int64_t>(n);
            std::vector<double> y(n), wide(n);
            std::vector<float> single(n), sizes(n);
            const double most = scaled(x.data(), 0.75, count, y.data());
            narrow(x.data(), 0.75, count, single.data());
            narrow_sizes(x.data(), 0.75, count, sizes.data());
            widen_upward(sizes.data(), 2, 0.5, count, wide.data());
            double top = -infinite, size = 0;
            for (std::size_t j = 0; j < n; ++j) {
                EXPECT_EQ(y[j], x[j] * 0.75);
                EXPECT_EQ(single[j], static_cast<float>(y[j]));
                EXPECT_EQ(sizes[j], std::abs(single[j]));
                EXPECT_EQ(wide[j], 2 * static_cast<double>(sizes[j]) + 0.5);
                top = std::max(top, y[j]);
                size = std::max(size, std::abs(x[j]));
            }
            EXPECT_EQ(most, top);
            EXPECT_EQ(extent(x.data(), count).largest, size);
            EXPECT_TRUE(extent(x.data(), count).finite);
            for (std::size_t at = 0; at < n; ++at)
                for (const double bad : {infinite, -infinite, std::nan("")}) {
                    std::vector<double> z = x;
                    z[at] = bad;
                    EXPECT_FALSE(extent(z.data(), count).finite) << at << " of " << n;
                    EXPECT_LE(extent(z.data(), count).largest, size);
                }
        }
        const float zero = 0;
        double out = 0;
        widen_upward(&zero, infinite, 0, 1, &out);
        EXPECT_EQ(out, infinite);
    });
}

}  // namespace
}  // namespace attest::oracle
