// The comparator itself: it must see NaN, the first and the last element, and a difference between
// one and ten bounds; and it must not cry where the dialect leaves a row open.

#include "properties/search/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/oracle/oracle.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::search {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A case, what is expected of it, and outputs that are the truth rounded.
struct Bench {
    Case tried;
    Dialect dialect;
    Numerics numerics;
    TensorSet inputs, observed;
    bound::Expected expected;

    explicit Bench(std::string_view line, Dialect d = {}) : tried(parse_case(line)), dialect(d) {
        inputs = make_inputs(tried);
        const Problem& p = tried.problem;
        expected = oracle::attend(p, dialect, numerics, inputs);
        Tensor o(type_of(p, Role::o), *shape_of(p, Role::o));
        Tensor lse(type_of(p, Role::lse), *shape_of(p, Role::lse));
        for (std::int64_t i = 0; i < o.size(); ++i)
            o.set(i, expected.output[static_cast<std::size_t>(i)].value);
        for (std::int64_t i = 0; i < lse.size(); ++i)
            lse.set(i, expected.lse[static_cast<std::size_t>(i)].value);
        observed.put(Role::o, std::move(o));
        observed.put(Role::lse, std::move(lse));
    }
    law::Verdict judge() const {
        return compare_with({tried.problem, dialect, numerics, inputs, observed}, expected);
    }
};

constexpr const char* line = "b2 hq4 hkv2 tq3 tk9 d5 causal f32";

TEST(Compare, TheTruthHoldsAndEveryElementCounts) {
    const law::Verdict verdict = Bench(line).judge();
    EXPECT_EQ(verdict.decision, law::Decision::holds) << verdict.reason.text;
    EXPECT_EQ(verdict.elements, 2 * 4 * 3 * 5 + 2 * 4 * 3);
    EXPECT_LE(verdict.worst_ratio, 1);
}

TEST(Compare, NanIsSeenInEveryPlace) {
    Bench bench(line);
    const Tensor good = bench.observed[Role::o];
    for (std::int64_t i = 0; i < good.size(); ++i) {
        bench.observed[Role::o] = good;
        bench.observed[Role::o].set(i, nan);
        EXPECT_EQ(bench.judge().decision, law::Decision::violated) << i;
    }
    bench.observed[Role::o] = good;
    for (std::int64_t i = 0; i < good.size(); ++i) bench.observed[Role::o].set(i, nan);
    EXPECT_EQ(bench.judge().decision, law::Decision::violated);
    bench.observed[Role::o] = good;
    bench.observed[Role::lse].set(bench.observed[Role::lse].size() - 1, nan);
    const law::Verdict verdict = bench.judge();
    ASSERT_EQ(verdict.decision, law::Decision::violated);
    EXPECT_EQ(verdict.violation->tensor, Role::lse);
    EXPECT_EQ(verdict.violation->index, (std::vector<std::int64_t>{1, 3, 2}));
}

/// Between one and ten bounds: a bound multiplied by ten would let it pass.
TEST(Compare, ThreeBoundsOffIsSeen) {
    Bench bench(line);
    Tensor& o = bench.observed[Role::o];
    const std::int64_t last = o.size() - 1;
    const bound::ExpectedElement& e = bench.expected.output.back();
    o.set(last, e.value + 3 * e.bound);
    const law::Verdict verdict = bench.judge();
    ASSERT_EQ(verdict.decision, law::Decision::violated);
    EXPECT_EQ(verdict.violation->index, (std::vector<std::int64_t>{1, 3, 2, 4}));
    EXPECT_GT(verdict.violation->ratio, 1);
    EXPECT_LT(verdict.violation->ratio, 4);
    EXPECT_EQ(verdict.violation->element_name, "output of query 2, head 3, sequence 1, channel 4");
}

TEST(Compare, RowsTheDialectLeavesOpenAreNotCounted) {
    // tq > tk: with the causal mask the first two queries see nothing.
    const char* empty = "b1 hq1 hkv1 tq5 tk3 d2 causal f32";
    Dialect refuse;
    refuse.empty_row = EmptyRow::refuse;
    Bench open(empty, refuse);
    open.observed[Role::o].set(0, 42.0);
    open.observed[Role::lse].set(0, 42.0);
    const law::Verdict verdict = open.judge();
    EXPECT_EQ(verdict.decision, law::Decision::holds) << verdict.reason.text;
    EXPECT_EQ(verdict.elements, 3 * 2 + 3);

    Dialect with_nan;
    with_nan.empty_row = EmptyRow::nan;
    Bench nans(empty, with_nan);
    nans.observed[Role::lse].set(0, 42.0);
    EXPECT_EQ(nans.judge().decision, law::Decision::holds);
    nans.observed[Role::o].set(0, 0.0);
    EXPECT_EQ(nans.judge().decision, law::Decision::violated);

    Bench zeros(empty);
    EXPECT_EQ(zeros.judge().decision, law::Decision::holds);
    zeros.observed[Role::lse].set(0, 0.0);
    EXPECT_EQ(zeros.judge().decision, law::Decision::violated);
}

}  // namespace
}  // namespace attest::search
