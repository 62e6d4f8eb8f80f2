#pragma once
// Paired cases that differ in their keys alone: doubled, padded with keys nobody sees, cut into
// parts, in another order. Row i of the paired case is row i of the original in every case. For
// problems without cache, documents and positions; those of cut and doubled keys without causal
// mask and window too, whose diagonal would move.

#include <cstdint>
#include <optional>
#include <vector>

#include "properties/law/paired_cases.hpp"
#include "properties/law/trial.hpp"

namespace attest::law {

/// Key j of the paired case is key from[j]: K, V and the columns of the mask tensor follow.
/// `lens_kv` are the paired case's, empty where the original has none.
PairedCase with_keys(const Problem& problem, const TensorSet& inputs,
                     const std::vector<std::int64_t>& from,
                     const std::vector<std::int64_t>& lens_kv);

/// Every key and its value twice: side by side, or where there are no lengths also the whole row
/// of keys after itself.
PairedCase with_keys_twice(const Problem& problem, const TensorSet& inputs, bool side_by_side);

/// `count` keys more, of ordinary data, that no query sees: because they lie past every sequence's
/// length, or because a mask tensor hides them. None where that kind of hiding cannot be added to
/// this problem.
enum class Neutral : std::uint8_t { length, boolean_mask, additive_mask };
std::optional<PairedCase> with_neutral_keys(const Given& given, const Problem& problem,
                                            const TensorSet& inputs, Neutral by, std::int64_t count,
                                            std::uint64_t stream);

}  // namespace attest::law
