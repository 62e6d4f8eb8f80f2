#pragma once
// The checks of the probability laws.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::laws {

Verdict check_row_sum(const Trial& trial);
Verdict check_nonnegative(const Trial& trial);
Verdict check_masked_zero(const Trial& trial);
Verdict check_order(const Trial& trial);
Verdict check_single_key(const Trial& trial);

}  // namespace attest::laws
