#pragma once
// The checks of the partition laws: a softmax computed in parts is the softmax of the whole.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::laws {

Verdict check_merge(const Trial& trial);
Verdict check_tile_edges(const Trial& trial);
Verdict check_order_of_keys(const Trial& trial);
Verdict check_stability(const Trial& trial);

}  // namespace attest::laws
