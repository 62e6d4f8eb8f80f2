#pragma once
// The checks of the convex hull laws.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::laws {

Verdict check_box(const Trial& trial);
Verdict check_support(const Trial& trial);
Verdict check_membership(const Trial& trial);

}  // namespace attest::laws
