#include "properties/law/visibility.hpp"

#include <gtest/gtest.h>

// after gtest
#include <cmath>

#include "reference/oracle/oracle.hpp"
#include "reference/problem/generators_test.hpp"
#include "reference/problem/inputs.hpp"

namespace attest::law {
namespace {

// Two readings of one page: the oracle's visible keys and the laws' must be the same set, for every
// dialect and every way of hiding.
RC_GTEST_PROP(Visibility, SeesWhatTheOracleSees, ()) {
    Case tried;
    tried.problem = generate::any_problem();
    tried.problem.dropout = {};
    tried.values.seed = generate::seed();
    Dialect dialect;
    dialect.causal = generate::one_of<CausalAlignment>(2);
    dialect.window_ends = generate::one_of<WindowEnds>(2);
    const Problem& problem = tried.problem;
    const TensorSet inputs = make_inputs(tried);
    const Visibility visibility(problem, dialect, inputs);
    oracle::RowDetails rows(problem, dialect, inputs);
    std::int64_t seen = 0, hidden = 0;
    for (const Row& row : all_rows(problem)) {
        if (!visibility.is_query(row)) continue;
        const oracle::RowDetail detail = rows.row(row.batch, row.head, row.query);
        for (std::int64_t j = 0; j < problem.len_kv; ++j) {
            const bool visible = detail.scores[static_cast<std::size_t>(j)] != -infinite;
            RC_ASSERT(visibility.sees(row, j) == visible);
            RC_ASSERT(visibility.reason(row, j).empty() == visible);
            ++(visible ? seen : hidden);
        }
    }
    RC_CLASSIFY(seen > 0 && hidden > 0);
}

TEST(Visibility, ExclusiveWindowsAdmitDistancesBelowTheirLimits) {
    Problem problem;
    problem.len_q = problem.len_kv = 8;
    problem.mask.window = {2, 0};
    Dialect dialect;
    const TensorSet none;
    const auto seen_by_four = [&] {
        return Visibility(problem, dialect, none).visible_count({0, 0, 4});
    };
    EXPECT_EQ(seen_by_four(), 3);  // keys 2, 3, 4
    dialect.window_ends = WindowEnds::exclusive;
    EXPECT_EQ(seen_by_four(), 2);  // a limit of 0 still admits distance 0
}

}  // namespace
}  // namespace attest::law
