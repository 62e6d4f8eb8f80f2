#pragma once
// Decoding step by step: a causal problem's queries run a few at a time, each step as a kernel
// meets it while it generates, and every row of a step is a row of the whole.

#include <optional>

#include "properties/law/paired_runs.hpp"

namespace attest::law {

/// The queries [begin, begin + count) of the case as a call of their own: through a cache where the
/// kernel has one, else as a plain problem. None where the kernel takes neither form, or where
/// neither means the same (the plain form keeps no position; a cache always aligns bottom-right).
std::optional<Run> step_of(const Run& whole, std::int64_t begin, std::int64_t count);

Verdict steps_of_one(const Trial& trial);     ///< token by token: first, last and random tokens
Verdict steps_of_chunks(const Trial& trial);  ///< the whole prefill cut at random places

/// Decoding queries are rotated at the cache's length, where position 0 gives another answer.
Verdict positions_continue(const Trial& trial);

/// Physical pages renamed (same bits), and the same cache contiguous or with other pages.
Verdict pages_do_not_matter(const Trial& trial);

/// Sequences of different lengths, each run alone at its own lengths.
Verdict sequences_stand_alone(const Trial& trial);

}  // namespace attest::law
