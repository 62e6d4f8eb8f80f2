#pragma once
// The oracle of long context: where the keys of a head are copies of few distinct ones, every row
// of every length costs no more than the classes do,
//   O_i = sum_r W_ir V_r / sum_r N_r W_ir,   W_ir = exp(s_ir - m),
// with N_r the number and V_r the sum of values of the visible keys of class r. Values differ from
// key to key, so a dropped, doubled or misplaced key still shows.

#include <cstdint>
#include <optional>

#include "reference/oracle/oracle.hpp"

namespace attest::oracle {

/// Every row, in double, with certified error and bound (a) (its centred part by Cauchy-Schwarz).
/// None where the problem has what tells copies of a key apart (RoPE, ALiBi, a mask tensor,
/// documents, a left window), where an input is not finite, or where some head has more than
/// `classes_max` distinct keys.
std::optional<bound::Expected> attend_collapsed(const Problem& problem, const Dialect& dialect,
                                                const Numerics& numerics, const TensorSet& inputs,
                                                std::int64_t classes_max = 256);

/// Overwrites k so that each head has `classes` distinct keys: key j becomes a copy of one of the
/// first `classes`, drawn by the seed.
void collapse_keys(TensorSet& inputs, std::int64_t classes, std::uint64_t seed);

}  // namespace attest::oracle
