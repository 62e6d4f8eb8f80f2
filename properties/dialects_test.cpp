// Kernels that are right break no law: one that tells the truth in any dialect, also those that no
// built-in kernel speaks; and one that uses its bounds up, another way in every call.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "properties/truthful_test.hpp"
#include "reference/problem/counter.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::law {
namespace {

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
    constexpr std::int64_t cases = 16;
    TruthfulKernel kernel(dialect_number(GetParam()));
    const Dialect& d = kernel.manifest().dialect;
    for (const Property& law : catalogue()) {
        if (law.needs.simulated) continue;
        const auto tried = try_law(kernel, law, cases);
        EXPECT_EQ(tried.violated, 0) << law.id << ": " << tried.example;
        const bool asked =
            law.id != "reference.structure" &&  // it declares none
            law.cases.formats != std::vector{Precision::f64} &&
            !(law.id == "masking.empty_row" && d.empty_row == EmptyRow::refuse) &&
            !(law.id == "hygiene.nonfinite" && d.nonfinite == Nonfinite::unspecified);
        if (asked) {
            EXPECT_GT(tried.judged, cases / 2) << law.id;
        }
    }
}

// Dialect 0 is planted_test's.
INSTANTIATE_TEST_SUITE_P(Dialects, EveryDialect, ::testing::Range(1, 5));

// A smallest case may hold its values number by number: these fit no other shape than its own.
TEST(Laws, TakeValuesThatAreWrittenOut) {
    constexpr std::int64_t cases = 8;
    TruthfulKernel kernel({});
    for (const Property& law : catalogue()) {
        if (law.needs.simulated) continue;
        for (std::int64_t k = 0; k < cases; ++k) {
            std::optional<Case> c =
                search::draw_case(law, kernel.manifest(), search::Profile{}, 1, k);
            if (!c) continue;
            const TensorSet inputs = make_inputs(*c);
            for (const Role role : {Role::q, Role::k, Role::v}) {
                std::vector<double> numbers = inputs[role].to_doubles();
                for (double& x : numbers)
                    if (std::isnan(x)) x = 0;  // poison cannot be written out
                c->values.tensors[role] = {Fill::explicit_values, std::move(numbers)};
            }
            search::Judged judged;
            EXPECT_NO_THROW(judged = search::judge_case(kernel, law, *c, k)) << law.id;
            EXPECT_FALSE(search::failure_kind(judged.record).has_value()) << law.id;
        }
    }
}

// Any answer within the bounds passes, also when no two calls agree: half of all elements go to the
// very edge. (Not asked: laws that know more of a kernel than its bounds.)
class EveryBound : public ::testing::TestWithParam<int> {};

TEST_P(EveryBound, SlippingToTheEdgeBreaksNoLawThatRestsOnIt) {
    constexpr std::int64_t cases = 40;
    std::uint64_t elements = 0;
    const auto slip = [&](const bound::ExpectedElement& e, std::int64_t) {
        const double share = counter_uniform(7, 0, ++elements);
        const double radius = e.bound - e.error;
        const double side = share < 0.25 ? -1 : share < 0.5 ? 1 : 4 * share - 3;
        return radius > 0 ? e.value + side * radius * (1 - 0x1p-40) : e.value;
    };
    TruthfulKernel kernel(dialect_number(GetParam()), {.id = "slips", .answers = slip});
    kernel.claim_no_bits();
    for (const Property& law : catalogue()) {
        if (law.knows_more || law.needs.deterministic) continue;
        const auto tried = try_law(kernel, law, cases);
        EXPECT_EQ(tried.violated, 0) << law.id << ": " << tried.example;
    }
}

INSTANTIATE_TEST_SUITE_P(Dialects, EveryBound, ::testing::Range(0, 5));

}  // namespace
}  // namespace attest::law
