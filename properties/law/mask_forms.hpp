#pragma once
// One mask, several forms: built in, written out as a tensor, broadcast, sliced away, aligned the
// other way; and rows that see no key at all.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

/// The built-in mask = an explicit boolean mask = an additive one with -inf = the hidden keys
/// sliced away. Without alibi, rope, cache, dropout.
Judgement mask_forms_agree(const Trial& trial);

/// A mask with shared axes = its expansion.
Plan broadcast_agrees(const Given& given);

/// Where the other alignment's answer is apart from the declared one's, the kernel gives the
/// declared one. Without alibi, rope, cache, dropout.
Judgement alignment_is_declared(const Trial& trial);

/// Empty rows follow the dialect; rows past lens_q are zeros; other rows do not notice.
Plan empty_rows_follow_policy(const Given& given);

}  // namespace attest::law
