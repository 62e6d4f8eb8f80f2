// The three arithmetics against each other: each must contain the truth of the widest within its
// own certified error, over problems that use every feature.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/oracle/oracle.hpp"
#include "reference/oracle/random_problem.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::oracle {
namespace {

struct CertifiedTally {
    std::int64_t elements = 0, certified = 0, finite_bounds = 0, finite = 0;
    double worst = 0, bound_off = 0;
};

/// Both intervals hold the truth, so the values are no farther apart than the errors together.
void compare(const std::vector<bound::ExpectedElement>& wide,
             const std::vector<bound::ExpectedElement>& narrow, const std::string& line,
             CertifiedTally& tally) {
    ASSERT_EQ(wide.size(), narrow.size());
    for (std::size_t e = 0; e < wide.size(); ++e) {
        ++tally.elements;
        const bound::ExpectedElement &w = wide[e], &n = narrow[e];
        ASSERT_FALSE(std::isnan(n.bound) || std::isnan(n.error)) << line << " element " << e;
        if (!std::isfinite(w.value)) {
            ASSERT_EQ(std::isnan(w.value), std::isnan(n.value)) << line;
            ASSERT_TRUE(std::isnan(w.value) || w.value == n.value) << line;
            continue;
        }
        ASSERT_TRUE(std::isfinite(w.error)) << line << " element " << e;
        ++tally.finite;
        if (!std::isfinite(n.error)) continue;
        ++tally.certified;
        const double distance = std::abs(w.value - n.value);
        ASSERT_LE(distance, w.error + n.error) << line << " element " << e;
        if (distance > 0) tally.worst = std::max(tally.worst, distance / (w.error + n.error));
        if (std::isfinite(w.bound) && w.bound > 1e-300) {
            ++tally.finite_bounds;
            tally.bound_off = std::max(tally.bound_off, std::abs(n.bound / w.bound - 1));
        }
    }
}

CertifiedTally against_exact(Arithmetic arithmetic, std::uint64_t first, std::uint64_t cases) {
    CertifiedTally tally;
    for (std::uint64_t number = first; number < first + cases; ++number) {
        const RandomCase c = random_case(number, 80, 40);
        const std::string line = print(c.tried);
        const TensorSet inputs = make_inputs(c.tried);
        const Problem& p = c.tried.problem;
        const bound::Expected exact = attend(p, c.dialect, {}, inputs, Arithmetic::exact);
        const bound::Expected other = attend(p, c.dialect, {}, inputs, arithmetic);
        compare(exact.output, other.output, line, tally);
        compare(exact.lse, other.lse, line, tally);
        EXPECT_EQ(exact.row_empty, other.row_empty);
        if (testing::Test::HasFatalFailure()) break;
    }
    return tally;
}

TEST(arithmetics, double_double_agrees_with_exact_within_its_error) {
    const CertifiedTally t = against_exact(Arithmetic::double_double, 0, 600);
    EXPECT_GT(t.elements, 30000);
    EXPECT_GE(static_cast<double>(t.certified), 0.9 * static_cast<double>(t.finite_bounds));
    EXPECT_LT(t.bound_off, 1e-9);
}

TEST(arithmetics, plain_double_agrees_with_exact_within_its_error) {
    const CertifiedTally t = against_exact(Arithmetic::plain_double, 1000, 600);
    EXPECT_GT(t.elements, 30000);
    EXPECT_GT(t.certified, t.elements / 2);
    EXPECT_GT(t.worst, 1e-4);  // an error bound nothing comes near would prove little
}

TEST(arithmetics, filtered_agrees_with_exact_and_settles_its_rows) {
    const CertifiedTally t = against_exact(Arithmetic::filtered, 2000, 600);
    EXPECT_GT(t.elements, 30000);
    EXPECT_EQ(t.certified, t.finite);
    EXPECT_LT(t.bound_off, 1e-4);
    EXPECT_GT(t.worst, 1e-4);
}

}  // namespace
}  // namespace attest::oracle
