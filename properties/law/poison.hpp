#pragma once
// What lies outside a sequence, or is hidden in it, may hold anything: other numbers, huge ones,
// NaN.

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

/// Keys, values and queries past a sequence's lengths, overwritten with ordinary and huge numbers.
Judgement padding_changes_nothing(const Trial& trial);

/// Everything hidden, overwritten with NaN, infinities and huge numbers; and no cache slot without
/// a key is read.
Judgement poison_changes_nothing(const Trial& trial);

}  // namespace attest::law
