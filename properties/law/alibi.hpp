#pragma once
// ALiBi as what it stands for: a bias of -slope times the distance.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

/// Built in = written out as an additive mask, and under flat scores near keys weigh more than far
/// ones. The case has alibi, no mask tensor, no soft cap.
Judgement alibi_is_its_bias(const Trial& trial);

}  // namespace attest::law
