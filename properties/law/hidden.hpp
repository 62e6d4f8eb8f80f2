#pragma once
// Non-interference: what a row may not see can hold anything. Keys are overwritten that a row
// cannot see, and the row must come out as it was.
//
// Two such runs differ in nothing the row may read: same shapes, same masks, same strides. So a
// kernel that claims determinism performs the same arithmetic on the same numbers for that row and
// must give the same bits. One that claims none is held to its bounds: both rows have the same
// truth.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/law/paired_runs.hpp"

namespace attest::law {

/// A set of keys, its own for every sequence and key/value head.
class KeySet {
public:
    explicit KeySet(const Problem& problem);
    void add(std::int64_t batch, std::int64_t head_kv, std::int64_t key);
    bool has(std::int64_t batch, std::int64_t head_kv, std::int64_t key) const;
    bool empty() const noexcept;
    /// The keys of one head of one sequence, ascending.
    std::vector<std::int64_t> of(std::int64_t batch, std::int64_t head_kv) const;

private:
    std::int64_t heads_, keys_;
    std::vector<std::uint8_t> chosen_;
};

/// What hidden keys and values are overwritten with.
enum class Filling : std::uint8_t {
    fresh,             ///< normal numbers
    huge,              ///< +-1e4: beats every visible score, and is finite in every format; less
                       ///< where a declared step may overflow and nothing is asked of infinities
    largest,           ///< +-the largest finite number
    nonfinite_keys,    ///< NaN, +inf, -inf in K
    nonfinite_values,  ///< the same in V
};

/// q, k, v with the keys and values of `keys` overwritten.
TensorSet overwritten(const Trial& trial, const Problem& problem, const TensorSet& inputs,
                      const KeySet& keys, Filling filling);

/// One element of what a filling writes; `role` is k or v.
double filling_value(const Trial& trial, Filling filling, Role role, Precision format,
                     std::uint64_t element);

/// The keys that the anchor query of each sequence (one a sequence; past lens_q: none) cannot see
/// for `by`, or for any reason, in every query head that reads them.
KeySet hidden_from(const Run& base, const std::vector<std::int64_t>& anchors,
                   std::optional<Hiding> by);

/// The defined rows that see none of the keys.
std::vector<RowMatch> rows_blind_to(const Run& base, const KeySet& keys);

/// Overwrites the keys and compares every row that sees none of them.
Judgement change_nothing(const Run& base, const KeySet& keys, Filling filling);

/// change_nothing over the fillings and over several anchors: all queries of small problems, the
/// first, the last and random ones of others.
Judgement non_interference(const Run& base, std::optional<Hiding> by,
                           std::span<const Filling> fillings);

/// Overwrites the rows of q at and past lens_q: no row may change.
Judgement padded_queries_change_nothing(const Run& base, Filling filling);

}  // namespace attest::law
