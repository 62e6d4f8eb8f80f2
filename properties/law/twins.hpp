#pragma once
// Twins: another problem with its inputs that has the same answers, row by row. Where a case has no
// such twin the law ends there: not applicable (Stopped). Each function
// states which row of the twin is which row of the original. Twins of a paged or variable-length
// problem get tables and lengths of their own.

#include <cstdint>
#include <vector>

#include "properties/law/compare.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest {

struct Twin {
    Problem problem;
    TensorSet inputs;
};

/// The tensors `problem` needs: q, k, v, mask, slopes and sinks from `inputs` where it has them, in
/// the problem's shapes; what follows from the problem alone (lengths, block table, positions) is
/// its own.
Twin adopt(const Problem& problem, const TensorSet& inputs);

/// Sequence b of the twin is sequence from[b]; a sequence may come several times. No documents.
Twin with_sequences(const Problem& problem, const TensorSet& inputs,
                    const std::vector<std::int64_t>& from);

/// Every way of hiding keys (lengths, documents, causal, window, mask tensor) folded into one mask
/// tensor of the full shape: boolean, or additive with -inf where hidden and else the original's
/// finite bias or 0. No alibi, rope or cache, whose positions would change; boolean only where
/// there is no bias. Rows correspond one to one.
Twin with_explicit_mask(const Problem& problem, const Dialect& dialect, const TensorSet& inputs,
                        MaskKind kind);

/// The row alone with the keys it sees, unmasked but for a finite bias. It must see a key; no
/// alibi, rope or cache. The twin's only row is that row.
Twin with_visible_keys(const Problem& problem, const Dialect& dialect, const TensorSet& inputs,
                       const Row& row);

/// The queries [begin, begin + count) of a causal problem, with the keys up to the last of them:
/// one step of a decode. As a cache problem, or as a plain one. No documents, no lens_q; every
/// query past the sequence's start. Row i of the twin is row begin + i.
Twin continued(const Problem& problem, const TensorSet& inputs, std::int64_t begin,
               std::int64_t count, bool cached);

/// One sequence alone at its own lengths, both positive. Row i of the twin is row i of the
/// sequence.
Twin sequence_alone(const Problem& problem, const TensorSet& inputs, std::int64_t batch);

/// Every key/value head written out once a query head: heads_kv = heads_q. Rows one to one.
Twin with_heads_repeated(const Problem& problem, const TensorSet& inputs);

}  // namespace attest
