#pragma once
// One row of the backward pass in double, as its bound reads it.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/backward_bound.hpp"
#include "reference/bound/expected.hpp"
#include "reference/oracle/prepared.hpp"

namespace attest::oracle {

/// Kept from row to row. The arithmetic fills dp (one an entry: a visible key, then the sink) and
/// slope (likewise; empty without a cap).
class GradientFacts {
public:
    /// `feeds_unit`: whether sizes of operands are wanted, BackwardFacts::fed.
    explicit GradientFacts(const Prepared& call, bool feeds_unit = false)
        : call_(call), feeds_unit_(feeds_unit) {}
    std::vector<double> dp, slope;

    /// `flat` is the row over [batch, heads_q, len_q]; d_output [dim_v]; values [len_kv, dim_v]; d
    /// as in BackwardFacts; d_lse in natural units.
    bound::BackwardFacts make(std::int64_t flat, std::span<const std::int64_t> visible,
                              const double* d_output, const double* values,
                              const bound::Expected& forward, double d, double d_lse);
    /// sum_c |dO_c| times the reference's own error of O_c, its rounding to double apart, and what
    /// dLSE is off by.
    double own_output() const { return own_output_; }

private:
    const Prepared& call_;
    bool feeds_unit_;
    std::vector<double> dp_size_;
    double own_output_ = 0;
};

/// Where no format overflows, P and O are finite, and a row whose dO is 0 adds 0 to every sum, to
/// the bit: dP = D = 0 and P dO = 0. Long sequences are affordable by such rows.
bool zeros_add_nothing(const Prepared& call);

}  // namespace attest::oracle
