#pragma once
// The gradients of attention with respect to q, k, v, an additive mask, sinks and slopes, each with
// the reference's certified error and the bound of a kernel of declared numerics:
//
//   dV_j = sum_i P_ij dO_i,  dP_ij = dO_i.v_j,  D_i = dO_i.O_i - dLSE_i,  dS_ij = P_ij (dP_ij -
//   D_i) dX = dS cap'(X),  dQ_i = scale sum_j dX_ij k_j,  dK_j = scale sum_i dX_ij q_i dslope =
//   -sum_ij |i + off - j| times the gradient of its bias
//
// dLSE is the gradient of the log-sum-exp in natural units, 0 where none is given: LSE's derivative
// of a score is P_ij, so that an LSE in base 2 gives dLSE / log(2).
// RoPE turns dQ and dK back; a group of query heads adds up in its key head.

#include "reference/bound/expected.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::oracle {

/// `inputs` holds d_o, and d_lse where it is given, beside what attend() reads. A query that sees
/// no key, and a key that no query sees, have gradient exactly 0. Throws BadInput as attend() does,
/// and for a paged cache.
bound::ExpectedGradients attend_gradients(const Problem& problem, const Dialect& dialect,
                                          const Numerics& numerics, const TensorSet& inputs,
                                          Arithmetic arithmetic = Arithmetic::filtered);

}  // namespace attest::oracle
