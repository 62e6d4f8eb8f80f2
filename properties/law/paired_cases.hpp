#pragma once
// Paired cases: another problem with its inputs that has the same answers, row by row. A law asks
// only for pairs that the cases of its space have. Each function states which row of
// the paired case is which row of the original. Paired cases of a paged or variable-length problem
// get tables and lengths of their own.

#include <cstdint>
#include <vector>

#include "properties/law/compare.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::law {

struct PairedCase {
    Problem problem;
    TensorSet inputs;
};

/// The tensors `problem` needs: q, k, v, mask, slopes and sinks from `inputs` where it has them, in
/// the problem's shapes; what follows from the problem alone (lengths, block table, positions) is
/// its own.
PairedCase adopt(const Problem& problem, const TensorSet& inputs);

/// Sequence b of the paired case is sequence from[b]; a sequence may come several times. No
/// documents.
PairedCase with_sequences(const Problem& problem, const TensorSet& inputs,
                          const std::vector<std::int64_t>& from);

/// Every way of hiding keys (lengths, documents, causal, window, mask tensor) folded into one mask
/// tensor of the full shape: boolean, or additive with -inf where hidden and else the original's
/// finite bias or 0. No alibi, rope or cache, whose positions would change; boolean only where
/// there is no bias. Rows correspond one to one.
PairedCase with_explicit_mask(const Problem& problem, const Dialect& dialect,
                              const TensorSet& inputs, MaskKind kind);

/// The row alone with the keys it sees, unmasked but for a finite bias. It must see a key; no
/// alibi, rope or cache. The paired case's only row is that row.
PairedCase with_visible_keys(const Problem& problem, const Dialect& dialect,
                             const TensorSet& inputs, const Row& row);

/// The queries [begin, begin + count) of a causal problem, with the keys up to the last of them:
/// one step of a decode. As a cache problem, or as a plain one. No documents, no lens_q; every
/// query past the sequence's start. Row i of the paired case is row begin + i.
PairedCase continued(const Problem& problem, const TensorSet& inputs, std::int64_t begin,
                     std::int64_t count, bool cached);

/// One sequence alone at its own lengths, both positive. Row i of the paired case is row i of the
/// sequence.
PairedCase sequence_alone(const Problem& problem, const TensorSet& inputs, std::int64_t batch);

/// Every key/value head written out once a query head: heads_kv = heads_q. Rows one to one.
PairedCase with_heads_repeated(const Problem& problem, const TensorSet& inputs);

}  // namespace attest::law
