#pragma once
// Mask tensors as people make them: which keys each row sees, by the name of a pattern. A row
// depends on the seed, its coordinates, the lengths and the tile, so that every tile size comes up
// and a case is told by its line. Only iid and empty_rows leave rows without a key.

#include <cstdint>
#include <span>

#include "reference/problem/problem.hpp"

namespace attest {

/// Whether a pattern is made of tiles of keys; where not, MaskTensor::tile says nothing.
bool has_tiles(MaskPattern pattern) noexcept;

class PatternedMask {
public:
    PatternedMask(const Problem& problem, std::uint64_t seed);

    /// One element a key, one alone where keys share it: whether row (b, h, i) of the mask tensor
    /// sees it.
    void row(std::int64_t b, std::int64_t h, std::int64_t i, std::span<bool> visible) const;

    /// Whether an additive mask leaves what it shows without a bias, as one made from a boolean
    /// mask does: on every other seed of a pattern, never where keys are independent.
    bool unbiased() const;

private:
    struct Row {
        std::int64_t b, h, i;
        std::int64_t own;    ///< the key that stands where the query does, counted from the end
        std::int64_t alike;  ///< rows of one number hide the same keys
    };
    struct Keys {
        std::int64_t begin, end;
    };
    using Sees = bool (PatternedMask::*)(const Row&, std::int64_t key) const;

    std::uint64_t bits(std::int64_t number, std::int64_t b, std::int64_t h, std::int64_t t) const;
    std::int64_t below(std::int64_t limit, std::int64_t number, std::int64_t b, std::int64_t h = 0,
                       std::int64_t t = 0) const;
    std::int64_t pad(std::int64_t b) const;
    std::int64_t tiles_hidden(const Row& row) const;
    Keys range(const Row& row) const;
    Keys document(const Row& row) const;
    Sees predicate() const;
    bool independent(const Row& row, std::int64_t key) const;
    bool dilated(const Row& row, std::int64_t key) const;
    bool in_block(const Row& row, std::int64_t key) const;
    bool outside_hole(const Row& row, std::int64_t key) const;
    bool on_board(const Row& row, std::int64_t key) const;
    void tree(const Row& row, std::span<bool> visible) const;

    MaskTensor how_;
    std::int64_t len_q_, len_kv_, tiles_;
    std::uint64_t seed_;
    std::int64_t rows_alike_;  ///< neighbouring rows that hide the same keys
};

}  // namespace attest
