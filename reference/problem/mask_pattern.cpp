#include "reference/problem/mask_pattern.hpp"

#include <algorithm>
#include <limits>

#include "reference/problem/counter.hpp"
#include "reference/problem/draw.hpp"

namespace attest {
namespace {

/// What a pattern draws, each from numbers of its own.
enum Number : std::int64_t { alike, biased, first, second, branch };

constexpr std::int64_t all_rows = std::numeric_limits<std::int64_t>::max();

}  // namespace

bool has_tiles(MaskPattern pattern) noexcept {
    using enum MaskPattern;
    return pattern != iid && pattern != one_key && pattern != prefix_lm && pattern != tree;
}

PatternedMask::PatternedMask(const Problem& problem, std::uint64_t seed)
    : how_(problem.mask.tensor),
      len_q_(problem.len_q),
      len_kv_(how_.shared_keys ? 1 : problem.len_kv),
      tiles_((len_kv_ + how_.tile - 1) / how_.tile),
      seed_(seed) {
    const std::int64_t choices[] = {1, how_.tile, all_rows};
    rows_alike_ = choices[below(3, alike, 0)];
}

std::uint64_t PatternedMask::bits(std::int64_t number, std::int64_t b, std::int64_t h,
                                  std::int64_t t) const {
    const auto stream = static_cast<std::uint64_t>(Stream::mask_pattern);
    return counter_bits(seed_, stream, row_key(b, h, t) + static_cast<std::uint64_t>(number));
}

/// In [0, limit).
std::int64_t PatternedMask::below(std::int64_t limit, std::int64_t number, std::int64_t b,
                                  std::int64_t h, std::int64_t t) const {
    const auto range = static_cast<std::uint64_t>(std::max<std::int64_t>(limit, 1));
    return static_cast<std::int64_t>(bits(number, b, h, t) % range);
}

bool PatternedMask::unbiased() const {
    return how_.pattern != MaskPattern::iid && below(2, biased, 0) == 0;
}

/// Keys of padding: about a tile or two, or any number that leaves a key.
std::int64_t PatternedMask::pad(std::int64_t b) const {
    const std::int64_t tile = how_.tile;
    const std::int64_t choices[] = {tile, 2 * tile, tile - 1, tile + 1, below(len_kv_, second, b)};
    return std::min(choices[below(5, first, b)], len_kv_ - 1);
}

/// Tiles at one end of the keys; at least one where all rows are alike.
std::int64_t PatternedMask::tiles_hidden(const Row& row) const {
    const std::int64_t drawn = below(tiles_ + 1, first, row.b, row.h, row.alike);
    return rows_alike_ == all_rows ? std::max<std::int64_t>(drawn, 1) : drawn;
}

/// Where a cut falls, a key begins a document: in 1 of `tile` places.
PatternedMask::Keys PatternedMask::document(const Row& row) const {
    Keys keys{0, len_kv_};
    for (std::int64_t j = 1; j < len_kv_; ++j) {
        if (below(how_.tile, first, row.b, 0, j) != 0) continue;
        if (j <= row.own)
            keys.begin = j;
        else
            return {keys.begin, j};
    }
    return keys;
}

/// The keys of the patterns that show one range of them; all for the others.
PatternedMask::Keys PatternedMask::range(const Row& row) const {
    const auto clamped = [this](std::int64_t begin, std::int64_t end) {
        return Keys{std::max<std::int64_t>(begin, 0), std::min(end, len_kv_)};
    };
    switch (how_.pattern) {
        case MaskPattern::left_pad:
            return {pad(row.b), len_kv_};
        case MaskPattern::right_pad:
            return {0, len_kv_ - pad(row.b)};
        case MaskPattern::one_key: {
            const std::int64_t key = below(len_kv_, first, row.b, row.h, row.alike);
            return {key, key + 1};
        }
        case MaskPattern::prefix_lm:
            return {0, std::max(row.own, below(len_kv_, first, row.b)) + 1};
        case MaskPattern::documents:
            return document(row);
        case MaskPattern::band:
            return clamped(row.own - below(how_.tile, first, row.b, row.h),
                           row.own + 1 + below(how_.tile, second, row.b, row.h));
        case MaskPattern::leading_tiles:
            return {std::min(tiles_hidden(row) * how_.tile, len_kv_ - 1), len_kv_};
        case MaskPattern::trailing_tiles:
            return clamped(0, std::max<std::int64_t>((tiles_ - tiles_hidden(row)) * how_.tile, 1));
        case MaskPattern::empty_rows:
            return {0, below(2, first, row.b, row.h, row.alike) * len_kv_};
        default:
            return {0, len_kv_};
    }
}

bool PatternedMask::independent(const Row& row, std::int64_t key) const {
    const auto index = row_key(row.b, row.h, row.i) + static_cast<std::uint64_t>(key);
    const double u = counter_uniform(seed_, static_cast<std::uint64_t>(Role::mask), index);
    return how_.kind == MaskKind::additive ? u >= 0.2 : u < 0.7;  // 2 and 3 of 10 are hidden
}

/// Every second, third, or tile-th key, counted from the query's own.
bool PatternedMask::dilated(const Row& row, std::int64_t key) const {
    const std::int64_t steps[] = {2, 3, std::max<std::int64_t>(how_.tile, 2)};
    return (row.own - key) % steps[below(3, first, row.b, row.h)] == 0;
}

/// Half of the blocks of tile x tile, and all of the diagonal's.
bool PatternedMask::in_block(const Row& row, std::int64_t key) const {
    const std::int64_t block = key / how_.tile, rows = row.i / how_.tile;
    return block == row.own / how_.tile || below(2, first + 8 * rows, row.b, row.h, block) == 0;
}

/// Half of the tiles between the first and the last are hidden.
bool PatternedMask::outside_hole(const Row& row, std::int64_t key) const {
    const std::int64_t tile = key / how_.tile;
    const bool inner = tile > 0 && tile < tiles_ - 1;
    return !inner || below(2, first + 8 * row.alike, row.b, row.h, tile) == 0;
}

bool PatternedMask::on_board(const Row& row, std::int64_t key) const {
    return (row.own / how_.tile + key / how_.tile) % 2 == 0;
}

/// Speculative decoding: the last keys are the nodes of a tree, one a query, which sees its
/// ancestors and all keys before the tree. A node's parent is the one before it, or any before it.
void PatternedMask::tree(const Row& row, std::span<bool> visible) const {
    const std::int64_t root = std::max<std::int64_t>(len_kv_ - len_q_, 0);
    std::fill(visible.begin(), visible.end(), false);
    std::fill_n(visible.begin(), root, true);
    for (std::int64_t node = row.own; node >= root;) {
        visible[static_cast<std::size_t>(node)] = true;
        const std::int64_t before = node - root;
        if (before == 0) return;
        const bool chained = below(2, first, row.b, 0, before) == 0;
        node = chained ? node - 1 : root + below(before, branch, row.b, 0, before);
    }
}

PatternedMask::Sees PatternedMask::predicate() const {
    switch (how_.pattern) {
        case MaskPattern::iid:
            return &PatternedMask::independent;
        case MaskPattern::dilated:
            return &PatternedMask::dilated;
        case MaskPattern::blocks:
            return &PatternedMask::in_block;
        case MaskPattern::inner_tiles:
            return &PatternedMask::outside_hole;
        case MaskPattern::checkerboard:
            return &PatternedMask::on_board;
        default:
            return nullptr;
    }
}

void PatternedMask::row(std::int64_t b, std::int64_t h, std::int64_t i,
                        std::span<bool> visible) const {
    if (len_kv_ == 0) return;
    const std::int64_t own = std::clamp<std::int64_t>(i + len_kv_ - len_q_, 0, len_kv_ - 1);
    const Row row{b, h, i, own, i / rows_alike_};
    if (how_.pattern == MaskPattern::tree) return tree(row, visible);
    const Keys keys = range(row);
    const Sees sees = predicate();
    for (std::int64_t j = 0; j < len_kv_; ++j)
        visible[static_cast<std::size_t>(j)] =
            j >= keys.begin && j < keys.end && (sees == nullptr || (this->*sees)(row, j));
}

}  // namespace attest
