#pragma once
// What the reference expects of a kernel, element by element, and how an observed element is judged
// against it.
//
// For each element the truth T satisfies |T - value| <= error, where error is the reference's own
// certified error, and a kernel of the declared numerics computes, before its final rounding, a
// number within `bound` of T. Rounding to the output format is monotone, so the observed element
// must lie in
//     [ rd(value - bound - error), rd(value + bound + error) ] (numerics.md B.1)
// If it lies in the same interval with the error's sign turned, the verdict is certain; between the
// two it is undecided and the element is computed again in wider arithmetic.

#include <cstdint>
#include <vector>

#include "reference/problem/precision.hpp"
#include "reference/problem/tensor.hpp"

namespace attest {

/// One expected element. `value` may be infinite or NaN where the dialect says so: then it must be
/// met by kind.
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

/// Everything expected of one call.
struct Expected {
    Shape output_shape{};                 ///< [batch, heads_q, len_q, dim_v]
    std::vector<ExpectedElement> output;  ///< row-major
    std::vector<ExpectedElement>
        lse;  ///< [batch, heads_q, len_q], in the dialect's base; empty rows -inf
    std::vector<std::uint8_t> row_empty;  ///< [batch, heads_q, len_q]: 1 where no key is visible
};

}  // namespace attest
