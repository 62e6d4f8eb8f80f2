#pragma once
// The truth: attention computed as its definition reads, with a certified bound on the
// computation's own error, and, in the same pass, the bound on what a kernel of declared numerics
// may differ by.

#include <cstdint>
#include <memory>
#include <vector>

#include "reference/bound/expected.hpp"
#include "reference/problem/case.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::oracle {

/// plain_double, double_double, exact: the definition in that arithmetic (exact: 50 digits).
/// filtered: vectorised double wherever its own error is small against the bound, else vectorised
/// double-double, else exact, row by row; rows no arithmetic can settle keep their larger error.
enum class Arithmetic : std::uint8_t { plain_double, double_double, exact, filtered };

/// What the reference computes for inputs laid out as make_inputs makes them. `exact` is
/// Boost.Multiprecision. Throws BadInput if a feature is not defined for attention at all.
bound::Expected attend(const Problem& problem, const Dialect& dialect, const Numerics& numerics,
                       const TensorSet& inputs, Arithmetic arithmetic = Arithmetic::filtered);

/// As attend, for the rows listed alone (flat over [batch, heads_q, len_q]): Expected::rows.
bound::Expected attend_rows(const Problem& problem, const Dialect& dialect,
                            const Numerics& numerics, const TensorSet& inputs,
                            const std::vector<std::int64_t>& rows, Arithmetic arithmetic);

/// Scores and weights of one row in double: masked keys have score -inf and weight 0. Keys in
/// order.
struct RowDetail {
    std::vector<double> scores;
    /// Shares before dropout, which add up to 1 with the sink's; weights after it.
    std::vector<double> shares, weights;
    double max = 0, sum = 0, lse = 0;
    double sink = 0;  ///< its score; -infinite where there is none
};

/// The rows of one call, which is made ready once. `inputs` have to outlive it.
class RowDetails {
public:
    RowDetails(const Problem& problem, const Dialect& dialect, const TensorSet& inputs);
    ~RowDetails();
    /// Flat over [batch, heads_q, len_q].
    RowDetail row(std::int64_t flat);
    RowDetail row(std::int64_t batch, std::int64_t head, std::int64_t query);

private:
    struct Call;
    std::unique_ptr<Call> call_;
};

/// All rows, flat over [batch, heads_q, len_q].
std::vector<RowDetail> row_details(const Problem& problem, const Dialect& dialect,
                                   const TensorSet& inputs);

}  // namespace attest::oracle
