#pragma once
// The permutation laws: each reorders one axis of a problem's inputs, runs it again and finds every
// row where the permutation put it.

#include <vector>

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::law {

Judgement permuted_keys(const Trial& trial);      ///< (k_j, v_j, mask_ij) in j: O and L stay
Judgement permuted_queries(const Trial& trial);   ///< (q_i, mask_i) in i: rows follow
Judgement permuted_tokens(const Trial& trial);    ///< rows of Q, K, V alike, unmasked: rows follow
Judgement permuted_heads(const Trial& trial);     ///< kv heads, and query heads inside a group
Judgement permuted_batch(const Trial& trial);     ///< whole sequences
Judgement permuted_features(const Trial& trial);  ///< channels of (Q, K), also turned, and of V

/// inverse(order)[order[n]] = n.
std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& order);

/// Keys (queries) that every sequence has: the axis, or the shortest length. A permutation that is
/// common to all sequences moves these alone.
std::int64_t keys_everywhere(const Problem& problem);
std::int64_t queries_everywhere(const Problem& problem);

}  // namespace attest::law
