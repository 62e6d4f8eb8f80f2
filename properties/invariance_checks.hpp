#pragma once
// The checks of the invariance laws. Each runs the kernel on the case and on a changed twin of it;
// what it compares and why is said above its definition and in the law's `why` (invariance.cpp).

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::laws {

Verdict check_value_linear(const Trial& trial);
Verdict check_key_shift(const Trial& trial);
Verdict check_bias_shift(const Trial& trial);
Verdict check_scale_exchange(const Trial& trial);
Verdict check_duplicate(const Trial& trial);
Verdict check_neutral_key(const Trial& trial);
Verdict check_kernel_regression(const Trial& trial);

}  // namespace attest::laws
