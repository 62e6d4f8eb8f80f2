#pragma once
// The tables of `attest explain`, a query a row and a key a column, and the steps under them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ci/explain_steps.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

constexpr std::int64_t explain_rows = 8;  ///< queries shown

struct ExplainTable {
    std::string title;
    std::function<std::string(std::int64_t i, std::int64_t j)> text;
};

/// Beside each other as far as they fit, around one query and key.
void draw_tables(Screen& screen, const std::vector<ExplainTable>& tables, const Problem& problem,
                 std::int64_t query, std::int64_t key);

void draw_steps(Screen& screen, const std::vector<Step>& steps);

/// With four digits behind the point.
std::string fixed(double x);

}  // namespace attest::ci
