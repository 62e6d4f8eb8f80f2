#pragma once
// The reference laws whose verdicts are of another class than a violation of the derived bound:
// against the declared structure, against the model of random rounding, and over many elements.

#include "properties/law/trial.hpp"

namespace attest::laws {

Verdict check_structure(const Trial& trial);
Verdict check_rounding(const Trial& trial);
Verdict check_probable(const Trial& trial);
Verdict check_error_budget(const Trial& trial);

}  // namespace attest::laws
