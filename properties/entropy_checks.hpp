#pragma once
// The checks of the entropy laws.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::laws {

Verdict check_monotone(const Trial& trial);
Verdict check_derivative(const Trial& trial);
Verdict check_limits(const Trial& trial);

}  // namespace attest::laws
