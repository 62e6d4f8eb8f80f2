// Doubles that become 16-bit numbers by way of f32.

#include <gtest/gtest.h>

#include <cmath>

#include "reference/oracle/other_bounds.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// rd(w_0) v_0 + rd(w_1) v_1 over w_0 + w_1, of scores 0 and x <= 0, in double.
double of_two_keys(double x, double v_0, double v_1) {
    const double w = std::exp(x);
    return (v_0 + round_to(w, Precision::bf16) * v_1) / (1 + w);
}

/// A double becomes a 16-bit number by way of f32 in C and on GPUs. Where f32's rounding ends on a
/// midpoint of bf16, the second one may go the other way than one alone.
TEST(StructureBound, AdmitsAConversionByWayOfSinglePrecision) {
    Problem p = parse_problem("b1 hq1 hkv1 tq1 tk2 d1 scale 1 bf16");
    Numerics numerics;
    numerics.accumulate = NumberFormat::f64;
    numerics.tile = 16;
    int found = 0;
    for (int n = 1; n < 128 * 64 && found < 4; ++n) {
        const double x = -std::ldexp(128 + n % 128, n / 128 % 8 - 10);
        const double v_0 = 1 + (n * 37 % 128) / 128.0, v_1 = -1 - (n * 11 % 128) / 128.0;
        for (int m = 0; m < 128; ++m) {
            const double v = v_1 - std::ldexp(m, -7), o = of_two_keys(x, v_0, v);
            const double once = round_to(o, Precision::bf16),
                         twice = round_to(round_to(o, Precision::f32), Precision::bf16);
            if (once == twice || round_to(v, Precision::bf16) != v) continue;
            ++found;
            TensorSet inputs = make_inputs({p, {}});
            inputs[Role::q].set(0, 1);
            inputs[Role::k].set(0, 0);
            inputs[Role::k].set(1, x);
            inputs[Role::v].set(0, v_0);
            inputs[Role::v].set(1, v);
            const auto s = attend_structure(p, {}, numerics, inputs, bound::TileOrder::ascending);
            ASSERT_TRUE(s.has_value());
            for (const double seen : {once, twice})
                EXPECT_NE(bound::judge(seen, s->output[0], Precision::bf16),
                          bound::Agreement::disagrees)
                    << x << " " << v_0 << " " << v;
            EXPECT_EQ(bound::judge(std::nextafter(once, 4) + std::ldexp(once, -7), s->output[0],
                                   Precision::bf16),
                      bound::Agreement::disagrees);
        }
    }
    EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace attest::oracle
