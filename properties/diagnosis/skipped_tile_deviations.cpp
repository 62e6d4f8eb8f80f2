// Whole tiles of keys that are skipped, or end, by what one of their keys or queries says: a mask
// tensor looked at in one place of a tile, a causal loop bounded by one query of a block.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// One query, and whether the mask tensor, or another rule, hides a key of its sequence from it.
struct QueryOfMask {
    const Specification& s;
    const Rules& rules;
    MaskPlace at;

    MaskPlace key(std::int64_t column) const {
        MaskPlace p = at;
        p.key += column - p.column;
        p.column = column;
        return p;
    }
    bool tensor_hides(std::int64_t column) const { return mask_value(s, key(column)) == -infinite; }
    bool tensor_hides_all(std::int64_t from, std::int64_t to) const {
        while (from < to && tensor_hides(from)) ++from;
        return from == to;
    }
    bool others_hide(std::int64_t column) const { return hidden(rules, key(column)); }
    bool sees_none(std::int64_t from, std::int64_t to) const {
        while (from < to && (others_hide(from) || tensor_hides(from))) ++from;
        return from == to;
    }
};

/// A block of queries: its rows, and how many heads it counts them of.
struct BlockSize {
    std::int64_t rows = 1, group = 1;
};

/// Whether a tile, keys [from, to) of a sequence, is taken for hidden.
using TakenForHidden = bool (*)(const QueryOfMask&, std::int64_t from, std::int64_t to, BlockSize);

struct TileLook {
    const char *id, *says;
    TakenForHidden skipped;
    bool of_block = false;  ///< it looks at one query of a block
};

QueryOfMask block_end(QueryOfMask query, BlockSize size, bool last) {
    MaskPlace& p = query.at;
    const BlockOfRows block = block_of(p, size.rows, size.group);
    const std::int64_t row = last ? block.last : block.first;
    if (size.group > 1 && !last) p.head += block.first_head - p.head % size.group;
    p.query += row - p.row;
    p.row = row;
    return query;
}

constexpr TileLook tile_looks[] = {
    {"ends", "no tile of {} keys whose first and last key the mask tensor hides",
     [](const QueryOfMask& q, std::int64_t from, std::int64_t to, BlockSize) {
         return q.tensor_hides(from) && q.tensor_hides(to - 1);
     }},
    {"seen_ends",
     "no tile of {} keys whose first and last key, of those that nothing else hides, the mask "
     "tensor hides",
     [](const QueryOfMask& q, std::int64_t from, std::int64_t to, BlockSize) {
         while (from < to && q.others_hide(from)) ++from;
         while (from < to && q.others_hide(to - 1)) --to;
         return from < to && q.tensor_hides(from) && q.tensor_hides(to - 1);
     }},
    {"first", "no tile of {} keys whose first key the mask tensor hides",
     [](const QueryOfMask& q, std::int64_t from, std::int64_t, BlockSize) {
         return q.tensor_hides(from);
     }},
    {"last", "no tile of {} keys whose last key the mask tensor hides",
     [](const QueryOfMask& q, std::int64_t, std::int64_t to, BlockSize) {
         return q.tensor_hides(to - 1);
     }},
    {"first_query",
     "no tile of {0} keys that the mask tensor hides wholly from the first query of its block of "
     "{1}",
     [](const QueryOfMask& q, std::int64_t from, std::int64_t to, BlockSize block) {
         return block_end(q, block, false).tensor_hides_all(from, to);
     },
     true},
    {"last_query",
     "no tile of {0} keys that the mask tensor hides wholly from the last query of its block of "
     "{1}",
     [](const QueryOfMask& q, std::int64_t from, std::int64_t to, BlockSize block) {
         return block_end(q, block, true).tensor_hides_all(from, to);
     },
     true},
    {"first_query_loop",
     "no tile of {0} keys that the mask tensor hides wholly from the first query of its block of "
     "{1}, as far as the causal mask lets the last one see",
     [](const QueryOfMask& q, std::int64_t from, std::int64_t to, BlockSize block) {
         const QueryOfMask last = block_end(q, block, true);
         while (from < to && last.others_hide(to - 1)) --to;
         return from < to && block_end(q, block, false).tensor_hides_all(from, to);
     },
     true},
    {"first_query_sees",
     "no tile of {0} keys of which the first query of its block of {1} sees none",
     [](const QueryOfMask& q, std::int64_t from, std::int64_t to, BlockSize block) {
         return block_end(q, block, false).sees_none(from, to);
     },
     true},
    {"last_query_sees", "no tile of {0} keys of which the last query of its block of {1} sees none",
     [](const QueryOfMask& q, std::int64_t from, std::int64_t to, BlockSize block) {
         return block_end(q, block, true).sees_none(from, to);
     },
     true},
};

/// What is looked at of a mask tensor, in which masks and blocks.
struct Look {
    const TileLook& what;
    std::int64_t block = 1;
    bool packed = false;   ///< the block's rows are those of all heads of a group
    bool boolean = false;  ///< additive masks are looked at key by key
};

/// Asked key by key, a tile is looked at once for each query.
class SkippedOnce {
public:
    template <class Skipped>
    bool operator()(const MaskPlace& p, std::int64_t tile, Skipped skipped) {
        const std::array at{p.batch, p.head, p.query, tile};
        if (at != at_) skipped_ = skipped();
        at_ = at;
        return skipped_;
    }

private:
    std::array<std::int64_t, 4> at_{-1, -1, -1, -1};
    bool skipped_ = false;
};

Deviation skipped_by(const Look& look, std::int64_t tile) {
    const std::string says =
        fmt::format(fmt::runtime(look.what.says), tile, rows_of_block(look.block, look.packed));
    const std::string of =
        look.what.of_block ? fmt::format("{}{}_{}", look.packed ? "packed_" : "", look.block, tile)
                           : std::to_string(tile);
    return {
        .id = fmt::format("mask_tile_{}{}_{}", look.boolean ? "boolean_" : "", look.what.id, of),
        .says = look.boolean ? says + ", where it is boolean" : says,
        .respecify = [look, tile](const Specification& s) -> std::optional<Specification> {
            const MaskKind kind = s.problem.mask.tensor.kind;
            if (kind == MaskKind::none || (look.boolean && kind != MaskKind::boolean))
                return std::nullopt;
            Rules rules = rules_of(s);
            const BlockSize block{look.block, look.packed ? group_size(s.problem) : 1};
            rules.also_hidden = [&s, &look, block, tile, own = rules,
                                 looked = SkippedOnce()](const MaskPlace& p) mutable {
                if (p.column < 0 || p.column >= p.len_kv || !p.in_document || p.row >= p.len_q)
                    return false;
                const std::int64_t from = p.column / tile * tile;
                return looked(p, from, [&] {
                    const std::int64_t to = std::min(from + tile, p.len_kv);
                    return look.what.skipped({s, own, p}, from, to, block);
                });
            };
            return with_rules(s, rules);
        },
        .tells = law::Tells::visibility};
}

/// The last key that the loop over tiles of keys comes to in a block of queries.
struct LoopEnd {
    const char *id, *says;
    std::int64_t (*of)(std::int64_t first, std::int64_t last, std::int64_t offset,
                       std::int64_t tile);
};

constexpr LoopEnd loop_limits[] = {
    {"first_query",
     "a causal mask whose keys end with the tile of {1} that holds the last one of the first query "
     "in its block of {0}",
     [](std::int64_t first, std::int64_t, std::int64_t offset, std::int64_t tile) {
         return tile_begin(first + offset, tile) + tile - 1;
     }},
    {"last_tile",
     "a causal mask whose keys end with the last whole tile of {1} before the last key of the last "
     "query in its block of {0}",
     [](std::int64_t, std::int64_t last, std::int64_t offset, std::int64_t tile) {
         return tile_begin(last + offset + 1, tile) - 1;
     }},
    {"top_left",
     "a causal mask whose keys end with the tile of {1} in which a mask aligned top-left would end "
     "them for the last query in its block of {0}",
     [](std::int64_t, std::int64_t last, std::int64_t, std::int64_t tile) {
         return tile_begin(last, tile) + tile - 1;
     }},
};

Deviation loop_ends(const LoopEnd& end, std::int64_t block, bool packed, std::int64_t tile) {
    return {
        .id = fmt::format("causal_loop_{}_{}{}_{}", end.id, packed ? "packed_" : "", block, tile),
        .says = fmt::format(fmt::runtime(end.says), rows_of_block(block, packed), tile),
        .respecify = [of = end.of, block, packed,
                      tile](const Specification& s) -> std::optional<Specification> {
            if (!s.problem.mask.causal) return std::nullopt;
            Rules rules = rules_of(s);
            const std::int64_t group = packed ? group_size(s.problem) : 1;
            rules.also_hidden = [=, top_left = rules.top_left](const MaskPlace& p) {
                const BlockOfRows own = block_of(p, block, group);
                return p.column > of(own.first, own.last, top_left ? 0 : p.len_kv - p.len_q, tile);
            };
            return with_rules(s, rules);
        },
        .tells = law::Tells::visibility};
}

bool agrees_with_first(const Deviation& deviation, const std::vector<Evidence>& wrong,
                       bool (*asked)(const Problem&)) {
    const auto call =
        std::ranges::find_if(wrong, [asked](const Evidence& e) { return asked(e.asked.problem); });
    return call != wrong.end() && agrees(deviation, *call);
}

}  // namespace

std::vector<Deviation> skipped_tiles(const std::vector<Evidence>& wrong) {
    std::vector<Deviation> list;
    const auto add = [&](Deviation d, bool (*asked)(const Problem&)) {
        if (agrees_with_first(d, wrong, asked)) list.push_back(std::move(d));
    };
    const auto masked = [](const Problem& p) { return p.mask.tensor.kind != MaskKind::none; };
    const auto causal = [](const Problem& p) { return p.mask.causal; };
    for (const std::int64_t tile : {16, 32, 64, 128})
        for (const TileLook& look : tile_looks)
            for (const bool packed : {false, true})
                for (const std::int64_t block : {16, 32, 64, 128, 8, 4})
                    for (const bool boolean : {false, true})
                        if (look.of_block || (block == 16 && !packed))
                            add(skipped_by({look, block, packed, boolean}, tile), masked);
    for (const LoopEnd& end : loop_limits)
        for (const bool packed : {false, true})
            for (const std::int64_t block : {16, 32, 64, 128, 8, 1})
                for (const std::int64_t tile : {16, 32, 64, 128})
                    add(loop_ends(end, block, packed, tile), causal);
    return list;
}

}  // namespace attest::diagnosis
