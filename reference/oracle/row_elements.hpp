#pragma once
// The elements expected of a row, where they are not the bound's alone.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/expected.hpp"
#include "reference/bound/forward_bound.hpp"
#include "reference/bound/kernel_model.hpp"
#include "reference/oracle/own_error.hpp"
#include "reference/oracle/prepared.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::oracle {

/// Whose keys a row sees: sequence and key/value head.
struct HeadPlace {
    std::int64_t batch = 0, head_kv = 0;
};

/// What is expected of a row without a visible key: o [dim_v] and its LSE.
void put_empty(const Prepared& call, const bound::KernelModel& model, const KeyRange& range,
               HeadPlace place, bound::ExpectedElement* o, bound::ExpectedElement& lse);

/// The LSE of a row in the dialect's base, given to double in both.
bound::ExpectedElement lse_element(LseBase base, double lse, double lse_two,
                                   const bound::RowBound& bound, const OwnError& own,
                                   const ArithmeticError& arithmetic);

/// Least and largest of each column [dim_v] over the keys visible; values [keys, dim_v].
void find_hull(const double* values, std::span<const std::int64_t> visible,
               std::vector<double>& low, std::vector<double>& high);

}  // namespace attest::oracle
