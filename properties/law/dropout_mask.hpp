#pragma once
// Which weights a kernel dropped, as its outputs show it; and a mask that a right kernel may draw.

#include <cstdint>
#include <functional>
#include <optional>

#include "properties/law/trial.hpp"

namespace attest::law {

/// Of a right kernel: a function of (seed, sequence, head, row, column). The truth drops by it
/// where it stands in for a kernel.
Tensor drawn_keep(const Problem& problem);
/// The inputs, with that mask where weights are dropped.
TensorSet with_drawn_keep(const Problem& problem, TensorSet inputs);

/// What was read: 1 where the weight is kept or the key is hidden.
struct KeptMask {
    Tensor keep;                        ///< [batch, heads_q, len_q, len_kv]
    std::vector<std::uint8_t> visible;  ///< in the same order
    std::int64_t cells = 0;             ///< that are visible
    /// dropout_keep says something else than the output shows.
    std::optional<Judgement> contradiction;

    bool kept(std::int64_t at) const { return keep.bits(at) != 0; }
    /// Of the visible ones.
    std::int64_t dropped() const;
    bool sees(std::int64_t at) const { return visible[static_cast<std::size_t>(at)] != 0; }
};

/// Queries, biases, slopes and sinks are zero, so that a row's n scores are the same and its
/// weights 1/n, and values are one-hot: channel c of the answer is the weight of key first + c. As
/// many calls as that takes.
KeptMask read_mask(const Trial& trial, const Problem& problem, const TensorSet& inputs);
std::int64_t reading_calls(const Problem& problem) noexcept;

/// The problem with more keys than a tile has, every one of them seen, in a form that the kernel
/// takes; none where it takes none.
std::optional<Problem> with_more_keys(const Problem& problem,
                                      const std::function<bool(const Problem&)>& taken);

/// Whether the mask that a call returned, if it did, is the one that was read.
std::optional<Judgement> contradicts(const Problem& problem, const KeptMask& mask,
                                     const TensorSet& outputs);

/// The same problem with another seed: `number` further.
Problem reseeded(Problem problem, std::uint64_t number);

}  // namespace attest::law
