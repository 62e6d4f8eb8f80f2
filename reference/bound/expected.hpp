#pragma once
// What the reference expects of a kernel, element by element, and how an observed element is judged
// against it.
//
// For each element the truth T satisfies |T - value| <= error, where error is the reference's own
// certified error, and a kernel of the declared numerics computes, before its final rounding, a
// number within `bound` of T. Rounding to the output format is monotone, so the observed element
// must lie in
//     [ rd(value - bound - error), rd(value + bound + error) ] (README.md, "The interval test")
// If it lies in the same interval with the error's sign turned, the verdict is certain; between the
// two it is undecided and the element is computed again in wider arithmetic.

#include <cstdint>
#include <utility>
#include <vector>

#include "reference/problem/precision.hpp"
#include "reference/problem/tensor.hpp"

namespace attest::bound {

/// One expected element. Where the dialect or the inputs say so it is met by kind:
///   value +-inf                  the same infinity
///   value NaN, bound 0           NaN
///   value NaN, bound infinite    anything that is not finite
///   value finite, bound infinite nothing is claimed, anything agrees
struct ExpectedElement {
    double value = 0;
    double error = 0;  ///< of the reference itself, >= 0
    double bound = 0;  ///< of a kernel of the declared numerics before its last rounding, >= 0, may
                       ///< be infinite
};

enum class Agreement : std::uint8_t { agrees, disagrees, undecided };

/// The monotone-rounding interval test. Written so that a NaN observation never agrees with a
/// finite expectation.
Agreement judge(double observed, const ExpectedElement& expected, Precision format) noexcept;

/// error/bound for reports: |observed - value| / (bound + error + rounding of the format at that
/// size); infinite for a non-finite observation of a finite expectation; 0 where both agree
/// exactly.
double error_ratio(double observed, const ExpectedElement& expected, Precision format) noexcept;

/// Everything expected of one call, or of some of its rows.
struct Expected {
    Shape output_shape{};  ///< [batch, heads_q, len_q, dim_v]
    /// Empty: every row. Else which rows (flat over [batch, heads_q, len_q]) the arrays below hold,
    /// in this order.
    std::vector<std::int64_t> rows;
    std::vector<ExpectedElement> output;  ///< [rows, dim_v]
    std::vector<ExpectedElement>
        lse;  ///< [batch, heads_q, len_q], in the dialect's base; empty rows -inf
    std::vector<std::uint8_t> row_empty;  ///< [batch, heads_q, len_q]: 1 where no key is visible,
                                          ///< rows past lens_q and rows with only a sink included
};

/// Everything expected of a backward pass, each in the shape of what it is the gradient of. Empty
/// where the problem has no such input.
struct ExpectedGradients {
    std::vector<ExpectedElement> d_q;       ///< [batch, heads_q, len_q, dim_qk]
    std::vector<ExpectedElement> d_k;       ///< [batch, heads_kv, len_kv, dim_qk]
    std::vector<ExpectedElement> d_v;       ///< [batch, heads_kv, len_kv, dim_v]
    std::vector<ExpectedElement> d_mask;    ///< of an additive mask, in its own (broadcast) shape
    std::vector<ExpectedElement> d_sinks;   ///< [heads_q]
    std::vector<ExpectedElement> d_slopes;  ///< [heads_q], of ALiBi

    const std::vector<ExpectedElement>& operator[](Role role) const noexcept {
        return role == Role::d_q       ? d_q
               : role == Role::d_k     ? d_k
               : role == Role::d_v     ? d_v
               : role == Role::d_mask  ? d_mask
               : role == Role::d_sinks ? d_sinks
                                       : d_slopes;
    }
    std::vector<ExpectedElement>& operator[](Role role) noexcept {
        return const_cast<std::vector<ExpectedElement>&>(std::as_const(*this)[role]);
    }
};

}  // namespace attest::bound
