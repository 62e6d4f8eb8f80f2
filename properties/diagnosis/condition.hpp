#pragma once
// The relations a boundary may be made of: statements about a problem that are true or false.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/problem/case.hpp"

namespace attest::diagnosis {

struct Condition {
    std::string says;      ///< completes "only ...": "when Tq ≠ Tk", "with a window"
    std::string quantity;  ///< the axis it is about: "len_kv"; empty: none
    std::string other;     ///< a second axis; empty: none
    std::function<bool(const Case&)> holds;
    std::string condition{};  ///< "Tq ≠ Tk", where says is "when" it; two of these are joined
    bool of_values = false;   ///< and not of the problem
};

/// Every relation tried, the simplest first: where two separate equally well, the earlier is
/// reported.
std::vector<Condition> conditions();

/// The value of an axis a boundary is drawn over: len_q, len_kv, dim_qk, dim_v, batch, heads_q,
/// heads_kv, group, splits, page_size.
std::int64_t quantity_of(const Problem& problem, const std::string& axis);

/// One less of it, whether such a problem is possible or not: for relations alone.
void lower(Problem& problem, const std::string& axis);

}  // namespace attest::diagnosis
