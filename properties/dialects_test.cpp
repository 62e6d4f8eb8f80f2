// A kernel that tells the truth breaks no law, in any dialect: the laws of pairs, masks and
// positions are asked of dialects that no built-in kernel speaks.

#include <gtest/gtest.h>

#include <set>

#include "properties/truthful_test.hpp"

namespace attest {
namespace {

using testing::TruthfulKernel;
using testing::try_law;

Dialect dialect_number(int n) {
    Dialect d;
    if (n % 2 == 1) d.causal = CausalAlignment::top_left;
    if (n == 1 || n == 4) d.empty_row = EmptyRow::nan;
    if (n == 2) d.empty_row = EmptyRow::refuse;
    if (n == 1 || n == 2) d.window_ends = WindowEnds::exclusive;
    if (n == 2 || n == 3) d.softcap = SoftcapPlace::after_bias;
    if (n >= 3) d.lse_base = LseBase::two;
    if (n == 4) d.nonfinite = Nonfinite::unspecified;
    return d;
}

class EveryDialect : public ::testing::TestWithParam<int> {};

TEST_P(EveryDialect, TheTruthBreaksNoLaw) {
    constexpr std::int64_t cases = 24;
    const std::set<std::string> families = {"equivariance", "masking", "heads",
                                            "decode",       "hygiene", "position"};
    TruthfulKernel kernel(dialect_number(GetParam()));
    for (const Property& law : catalogue()) {
        if (!families.contains(law.family()) || law.needs.backward) continue;
        const auto tried = try_law(kernel, law, cases);
        EXPECT_EQ(tried.violated, 0) << law.id << ": " << tried.example;
        const Dialect& d = kernel.manifest().dialect;
        const bool asked =
            !(law.id == "masking.empty_row" && d.empty_row == EmptyRow::refuse) &&
            !(law.id == "hygiene.nonfinite" && d.nonfinite == Nonfinite::unspecified);
        if (asked) {
            EXPECT_GT(tried.judged, cases / 2) << law.id;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Dialects, EveryDialect, ::testing::Range(0, 5));

}  // namespace
}  // namespace attest
