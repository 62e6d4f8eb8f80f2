#include "reference/oracle/row_elements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/oracle/nonfinite.hpp"

namespace attest::oracle {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

void put_empty(const Prepared& call, const KeyRange& range, bound::ExpectedElement* o,
               bound::ExpectedElement& lse) {
    const bool sink = call.problem.sink;
    const EmptyRow rule = call.dialect.empty_row;
    bound::ExpectedElement zero;
    lse = {.value = -infinite, .error = 0, .bound = 0};
    if (range.is_query && !sink && rule == EmptyRow::nan) {
        zero = claimed(Claim::nan);
        lse = claimed(Claim::nothing);
    }
    // refuse; or a sink that is no number, and nothing else.
    if (range.is_query && (sink || rule == EmptyRow::refuse)) zero = lse = claimed(Claim::nothing);
    std::fill(o, o + call.dim_v, zero);
}

bound::ExpectedElement lse_element(LseBase base, double lse, double lse_two,
                                   const bound::RowBound& bound, const OwnError& own,
                                   const ArithmeticError& arithmetic) {
    if (base == LseBase::e)
        return {
            .value = lse, .error = own.lse + double_rounding(lse), .bound = bound.lse().value()};
    constexpr double log2e = 1.4426950408889634;
    // 1.01 covers the products of two errors.
    return {.value = lse_two,
            .error = 1.01 * log2e * own.lse +
                     2 * (own.unit + arithmetic.function) * std::abs(lse_two) +
                     double_rounding(lse_two),
            .bound = bound.lse_base_two().value()};
}

void find_hull(const double* values, std::span<const std::int64_t> visible,
               std::vector<double>& low, std::vector<double>& high) {
    const std::int64_t dim_v = std::ssize(low);
    std::fill(low.begin(), low.end(), infinite);
    std::fill(high.begin(), high.end(), -infinite);
    for (const std::int64_t j : visible)
        for (std::size_t c = 0; c < low.size(); ++c) {
            const double v = values[j * dim_v + static_cast<std::int64_t>(c)];
            low[c] = std::min(low[c], v);
            high[c] = std::max(high[c], v);
        }
}

}  // namespace attest::oracle
