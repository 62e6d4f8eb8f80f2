// A kernel that computes everything in half precision, and one that puts a finite number in the
// place of hidden scores: within the bound of what they declare, and beyond it where they do not.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

/// Attention, each operation rounded to f16.
std::vector<double> rounded_attention(const Case& c) {
    const Problem& p = c.problem;
    const TensorSet inputs = make_inputs(c);
    const auto low = [&](double x) { return round_to(x, Precision::f16); };
    std::vector<double> out;
    for (std::int64_t i = 0; i < p.len_q; ++i) {
        std::vector<double> s;
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            double dot = 0;
            for (std::int64_t x = 0; x < p.dim_qk; ++x)
                dot =
                    low(dot + low(inputs[Role::q].at(0, 0, i, x) * inputs[Role::k].at(0, 0, j, x)));
            s.push_back(low(dot * low(effective_scale(p))));
        }
        const double most = *std::max_element(s.begin(), s.end());
        double sum = 0;
        for (double& x : s) {
            x = low(std::exp(low(x - most)));
            sum = low(sum + x);
        }
        for (std::int64_t x = 0; x < p.dim_qk; ++x) {
            double o = 0;
            for (std::int64_t j = 0; j < p.len_kv; ++j)
                o = low(o + low(s[static_cast<std::size_t>(j)] * inputs[Role::v].at(0, 0, j, x)));
            out.push_back(round_to(o / sum, p.format_o));
        }
    }
    return out;
}

std::int64_t beyond(const Case& c, NumberFormat accumulate, const std::vector<double>& seen) {
    Numerics numerics;
    numerics.accumulate = accumulate;
    const bound::Expected e = attend(c.problem, {}, numerics, make_inputs(c));
    std::int64_t count = 0;
    for (std::size_t n = 0; n < seen.size(); ++n)
        count +=
            bound::judge(seen[n], e.output[n], c.problem.format_o) == bound::Agreement::disagrees;
    return count;
}

TEST(Half, SumsInHalfPrecisionNeedTheirWord) {
    std::int64_t undeclared = 0, wrong = 0;
    for (int seed = 0; seed < 20; ++seed) {
        const Case c = parse_case("b1 hq1 hkv1 tq4 tk24 d16 f16 seed " + std::to_string(seed));
        const auto half = rounded_attention(c);
        EXPECT_EQ(beyond(c, NumberFormat::f16, half), 0) << seed;
        undeclared += beyond(c, NumberFormat::f32, half) > 0;
        // The word hides no bug: one key fewer is seen.
        Case fewer = c;
        fewer.problem.len_kv -= 1;
        wrong += beyond(c, NumberFormat::f16, rounded_attention(fewer)) > 0;
    }
    EXPECT_GE(undeclared, 5);
    EXPECT_GE(wrong, 5);
}

TEST(Half, ARowWithoutKeysIsTheMeanWhereThatIsDeclared) {
    Dialect dialect;
    dialect.empty_row = EmptyRow::mean;
    // Queries 0 and 1 see nothing.
    const Case c = parse_case("b1 hq1 hkv1 tq4 tk2 d4 causal f32 seed 3");
    const TensorSet inputs = make_inputs(c);
    const bound::Expected e = attend(c.problem, dialect, {}, inputs);
    for (std::int64_t x = 0; x < 4; ++x) {
        const double mean = (inputs[Role::v].at(0, 0, 0, x) + inputs[Role::v].at(0, 0, 1, x)) / 2;
        const auto& element = e.output[static_cast<std::size_t>(x)];
        EXPECT_EQ(bound::judge(round_to(mean, Precision::f32), element, Precision::f32),
                  bound::Agreement::agrees);
        EXPECT_EQ(bound::judge(mean * (1 + 1e-4) + 1e-4, element, Precision::f32),
                  bound::Agreement::disagrees);
        EXPECT_EQ(bound::judge(0, element, Precision::f32), bound::Agreement::disagrees);
    }
    // Where a finite number is added to a score, the row is no plain mean: nothing is said.
    const Case added =
        parse_case("b1 hq1 hkv1 tq4 tk2 d4 mask additive pattern empty_rows f32 seed 3");
    const bound::Expected none = attend(added.problem, dialect, {}, make_inputs(added));
    for (std::size_t n = 0; n < none.output.size(); ++n)
        if (none.row_empty[n / 4] != 0) {
            EXPECT_EQ(none.output[n].bound, HUGE_VAL);
        }
}

}  // namespace
}  // namespace attest::oracle
