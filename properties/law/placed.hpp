#pragma once
// Negative controls of the permutation laws: what tells places apart must show.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

/// Under a causal mask, a window, ALiBi or RoPE the answers do not simply follow reordered tokens.
Judgement places_show(const Trial& trial);

/// With Q = K, P_ab and P_ba differ as the log-sum-exps of their rows do.
Judgement softmax_runs_over_keys(const Trial& trial);

}  // namespace attest::law
