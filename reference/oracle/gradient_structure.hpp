#pragma once
// Expectations of the gradients under bound (s): the declared roundings of P and dS replayed, from
// the O and LSE that the kernel's own forward gave. A verdict under it is of class structure
// (../bound/README.md, "Classes of verdict").

#include <optional>

#include "reference/oracle/oracle.hpp"

namespace attest::oracle {

/// d_q, d_k and d_v as the declared structure gives them; `inputs` are those of backward: d_o (and
/// d_lse), o and lse among them. None where no structure is declared for this problem.
std::optional<bound::ExpectedGradients> attend_gradient_structure(const Problem& problem,
                                                                  const Dialect& dialect,
                                                                  const Numerics& numerics,
                                                                  const TensorSet& inputs);

}  // namespace attest::oracle
