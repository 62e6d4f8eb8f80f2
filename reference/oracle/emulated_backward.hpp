#pragma once
// A backward kernel in float for the tests of its bound: P recomputed from the stored LSE, D from
// the stored O, dLSE added to D, to dP or to their difference, P and dS rounded to the inputs'
// format where asked, outputs rounded; gradients of mask and slopes of dS before or after that.

#include <vector>

#include "reference/oracle/emulated_kernel.hpp"

namespace attest::oracle {

enum class BackwardDefect : std::uint8_t {
    none,
    d_omitted,   ///< dS = P dP
    k_unscaled,  ///< dK without the scale
    q_scaled_twice,
    d_of_next_row,
    cap_slope_omitted,
    distance_signed,  ///< in the gradient of ALiBi's slopes
    lse_ignored,      ///< the gradient of the LSE
    lse_negated,
    lse_of_other_base,
    weights_truncated,  ///< P toward zero, where it is rounded
    scores_unrounded,   ///< dX, where it is
};

struct Backward {
    std::vector<double> d_q, d_k, d_v, d_mask, d_slopes, d_sinks;
};

/// `inputs` holds d_o, and d_lse where it is given.
Backward emulate_backward(const Case& tried, const Dialect& dialect, const TensorSet& inputs,
                          const Emulation& how, BackwardDefect defect = BackwardDefect::none);

}  // namespace attest::oracle
