#pragma once
// Dropout: which weights are kept, and by what a kept one is multiplied. A weight's fate is a
// function of the seed and of its cell in [batch, heads_q, len_q, len_kv] alone, so it is the same
// in forward and backward, in any order of tiles, and for any length of the other axes.

#include <cstdint>

#include "kernels/cpu/call.hpp"

namespace attest::cpu {

/// 64 bits of a counter: the finaliser of SplitMix64 over seed, sequence and head, row, column.
constexpr std::uint64_t mixed_bits(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
constexpr std::uint64_t counter_of(std::uint64_t before, std::int64_t next) noexcept {
    return mixed_bits(before + 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(next) + 1));
}

/// Logical coordinates: of the tensors, also where they hold packed documents.
struct WeightCell {
    std::int64_t batch = 0, head = 0, query = 0, key = 0;
};
inline WeightCell cell_of(const Segment& s, std::int64_t head, std::int64_t i,
                          std::int64_t j) noexcept {
    return {s.batch, head, s.query0 + i, s.key0 + j};
}

/// 53 bits are held against p: the rate is p to within 2^-53.
inline bool is_kept(const attest_problem& p, const WeightCell& at) {
    std::uint64_t bits = counter_of(p.dropout_seed, at.batch);
    for (const std::int64_t next : {at.head, at.query, at.key}) bits = counter_of(bits, next);
    return static_cast<double>(bits >> 11) * 0x1p-53 >= p.dropout_p;
}

inline double kept_factor(const attest_problem& p) noexcept {
    return 1 / (1 - p.dropout_p);
}

/// What the weight of a cell is multiplied by: 1 without dropout.
inline double weight_factor(const attest_problem& p, const WeightCell& at) {
    if (p.dropout_p == 0) return 1;
    return is_kept(p, at) ? kept_factor(p) : 0;
}

/// dropout_keep, where the caller gave it a place.
using Keeps = bool (*)(const attest_problem&, const WeightCell&);
inline void write_keep(const Call& call, Keeps keeps = is_kept) {
    const attest_problem& p = call.problem;
    if (!call.dropout_keep) return;
    for (std::int64_t b = 0; b < p.batch; ++b)
        for (std::int64_t h = 0; h < p.heads_q; ++h)
            for (std::int64_t i = 0; i < p.len_q; ++i)
                for (std::int64_t j = 0; j < p.len_kv; ++j)
                    *call.dropout_keep.at(b, h, i, j) = std::byte{keeps(p, {b, h, i, j})};
}

}  // namespace attest::cpu
