#pragma once
// Attention whose weights were dropped by a mask that is known, M (inputs hold dropout_keep):
//
//   O_ic = f sum_j P_ij M_ij v_jc,  f = 1/(1-p)     dV_jc = f sum_i P_ij M_ij dO_ic
//   dP_ij = f M_ij dO_i.v_j,  D_i = dO_i.O_i,  dS, dQ, dK and the others as without dropout
//
// Written as attention without dropout: every row of every head of a group gets channels of values
// of its own, v'_j,(g,i,c) = M_ij v_jc, and dO' is dO in the row's own channels and 0 in all
// others. Then O' and dS' are O and dS over f, and dV is f times the sum of dV' where M keeps. So
// the engines, their certified errors and the bounds of the undropped are those of the dropped,
// times f.

#include "reference/bound/expected.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::oracle {

/// attend(), attend_rows() and attend_gradients() of what is spread so; the problem still says what
/// was dropped, for the roundings of f. Without dropout they are those functions.
bound::Expected attend_spread(const Problem& problem, const Dialect& dialect,
                              const Numerics& numerics, const TensorSet& inputs,
                              Arithmetic arithmetic);
bound::Expected attend_rows_spread(const Problem& problem, const Dialect& dialect,
                                   const Numerics& numerics, const TensorSet& inputs,
                                   const std::vector<std::int64_t>& rows, Arithmetic arithmetic);
bound::ExpectedGradients gradients_spread(const Problem& problem, const Dialect& dialect,
                                          const Numerics& numerics, const TensorSet& inputs,
                                          Arithmetic arithmetic);

/// What they give where weights are dropped.
bound::Expected attend_dropped(const Problem& problem, const Dialect& dialect,
                               const Numerics& numerics, const TensorSet& inputs,
                               Arithmetic arithmetic);
bound::Expected attend_rows_dropped(const Problem& problem, const Dialect& dialect,
                                    const Numerics& numerics, const TensorSet& inputs,
                                    const std::vector<std::int64_t>& rows, Arithmetic arithmetic);
bound::ExpectedGradients gradients_dropped(const Problem& problem, const Dialect& dialect,
                                           const Numerics& numerics, const TensorSet& inputs,
                                           Arithmetic arithmetic);

}  // namespace attest::oracle
