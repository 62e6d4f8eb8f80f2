#pragma once
// Decoding step by step: a causal problem's queries run a few at a time, each step as a kernel
// meets it while it generates, and every row of a step is a row of the whole.

#include "properties/law/paired_runs.hpp"

namespace attest::law {

Plan steps_of_one(const Given& given);     ///< token by token: first, last and random tokens
Plan steps_of_chunks(const Given& given);  ///< the whole prefill cut at random places

/// Decoding queries are rotated at the cache's length, where position 0 gives another answer.
Judgement positions_continue(const Trial& trial);

/// Physical pages renamed (same bits), and the same cache contiguous or with other pages.
Judgement pages_do_not_matter(const Trial& trial);

/// Sequences of different lengths, each run alone at its own lengths.
Judgement sequences_stand_alone(const Trial& trial);

}  // namespace attest::law
