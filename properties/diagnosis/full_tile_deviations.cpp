// Tiles that are taken for full, or for hidden, by what some of their queries see: in a full tile a
// mask is not asked, one that a window hides is passed over.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "properties/diagnosis/diagonal.hpp"
#include "properties/diagnosis/full_tiles.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// Queries, or rows of all heads of a group, by keys.
struct TileSize {
    std::int64_t queries = 1, keys = 1;
    bool packed = false;
    /// Without the keys that none of its queries reaches, and ended by splits.
    bool clipped = false;
};

std::string id_of(TileSize size) {
    return fmt::format("{}{}{}_{}", size.clipped ? "clipped_" : "", size.packed ? "packed_" : "",
                       size.queries, size.keys);
}

/// Keys that the causal mask and the window show this row of the place's sequence.
KeyExtent reach_of(const Rules& rules, const MaskPlace& p, std::int64_t row) {
    const auto from = [&](bool top_left) { return row + (top_left ? 0 : p.len_kv - p.len_q); };
    const std::int64_t here = from(rules.window_top_left);
    const auto reach = [&](std::int64_t limit) {
        return rules.ends == WindowEnds::exclusive && limit > 0 ? limit - 1 : limit;
    };
    KeyExtent seen{0, p.len_kv};
    if (rules.causal) seen.end = std::min(seen.end, from(rules.top_left) + 1);
    if (rules.window.left >= 0) seen.begin = std::max(seen.begin, here - reach(rules.window.left));
    if (rules.window.right >= 0)
        seen.end = std::min(seen.end, here + reach(rules.window.right) + 1);
    return seen;
}

/// A tile, and what the first and the last of its queries see.
struct TileOfMask {
    KeyExtent keys, first, last;
};

TileOfMask tile_of(const Problem& problem, const Rules& rules, const MaskPlace& p, TileSize size) {
    const BlockOfRows rows = block_of(p, size.queries, size.packed ? group_size(problem) : 1);
    const std::int64_t from = tile_begin(p.column, size.keys);
    TileOfMask t{
        {from, from + size.keys}, reach_of(rules, p, rows.first), reach_of(rules, p, rows.last)};
    if (!size.clipped) return t;
    KeyExtent split{t.first.begin, t.last.end};
    if (problem.splits > 1) {
        const std::int64_t each = (p.len_kv + problem.splits - 1) / problem.splits;
        split = {p.column / each * each, p.column / each * each + each};
    }
    t.keys.begin = std::max({t.keys.begin, t.first.begin, split.begin});
    t.keys.end = std::min({t.keys.end, t.last.end, split.end});
    return t;
}

bool within(KeyExtent keys, std::int64_t begin, std::int64_t end) {
    return keys.begin >= begin && keys.end <= end;
}

/// What is not asked in a tile that is taken for full, and when it is.
struct TakenForFull {
    const char *id, *says;
    std::function<bool(const TileOfMask&)> full;
    bool (*applies)(const Problem&);
    void (*forget)(Rules&);
    bool of_rows = true;     ///< one query is no block of them
    bool as_clipped = true;  ///< of clipped tiles, too
};

bool has_left(const Problem& p) {
    return p.mask.window.left >= 0;
}

const TakenForFull taken_for_full[] = {
    {"boolean",
     "no boolean mask in tiles of {} and {} keys which the causal mask and the window show wholly",
     [](const TileOfMask& t) { return within(t.keys, t.last.begin, t.first.end); },
     [](const Problem& p) { return p.mask.tensor.kind == MaskKind::boolean; },
     [](Rules& r) { r.mask_tensor = false; }, false},
    {"window_first",
     "no left limit of the window in tiles of {} and {} keys whose first query sees them all",
     [](const TileOfMask& t) { return within(t.keys, t.first.begin, t.first.end); }, has_left,
     [](Rules& r) { r.window.left = -1; }},
    {"causal_next",
     "no causal mask in tiles of {} and {} keys of which the first query sees all but one",
     [](const TileOfMask& t) { return t.keys.end <= t.first.end + 1; },
     [](const Problem& p) { return p.mask.causal; }, [](Rules& r) { r.causal = false; }},
    {"causal_last", "no causal mask in tiles of {} and {} keys whose last query sees them all",
     [](const TileOfMask& t) { return within(t.keys, t.last.begin, t.last.end); },
     [](const Problem& p) { return p.mask.causal; }, [](Rules& r) { r.causal = false; }, true,
     false},
};

Deviation not_asked(const TakenForFull& what, TileSize size) {
    const char* unit = size.packed ? "" : size.queries == 1 ? " query" : " queries";
    const std::string rows = rows_of_block(size.queries, size.packed) + unit;
    return {.id = fmt::format("full_tile_{}_{}", what.id, id_of(size)),
            .says = fmt::format(fmt::runtime(what.says), rows, size.keys) +
                    (size.clipped ? ", those apart that none of them reaches" : ""),
            .respecify = [&what, size](const Specification& s) -> std::optional<Specification> {
                if (!what.applies(s.problem)) return std::nullopt;
                const Rules own = rules_of(s);
                Rules rules = own;
                what.forget(rules);
                const bool of_tensor = own.mask_tensor && !rules.mask_tensor;
                rules.also_hidden = [&s, &what, own, size, of_tensor](const MaskPlace& p) {
                    if (p.column < 0 || p.column >= p.len_kv) return false;
                    const bool hides = of_tensor ? mask_value(s, p) == -infinite : hidden(own, p);
                    return hides && !what.full(tile_of(s.problem, own, p, size));
                };
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

/// Tiles that a loop does not come to, of whose keys or queries it asks one too few.
Deviation keys_from_last_query(TileSize size) {
    return {.id = "window_loop_last_" + id_of(size),
            .says = fmt::format("no key before the tile of {} in which the window of the last "
                                "query in its block of {} begins",
                                size.keys, size.queries),
            .respecify = [size](const Specification& s) -> std::optional<Specification> {
                if (!has_left(s.problem)) return std::nullopt;
                Rules rules = rules_of(s);
                rules.also_hidden = [&s, size, own = rules](const MaskPlace& p) {
                    const TileOfMask t = tile_of(s.problem, own, p, size);
                    return p.column < tile_begin(t.last.begin, size.keys);
                };
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

/// A loop over blocks of queries that ends where the first key of a tile leaves the window; `more`
/// queries later.
Deviation queries_to_first_key(TileSize size, std::int64_t more) {
    return {.id = fmt::format("window_queries_first_{}_{}_{}", size.queries, size.keys, more),
            .says = fmt::format("no block of {} queries behind the last query that sees the first "
                                "key of a tile of {}",
                                size.queries, size.keys) +
                    (more > 0 ? fmt::format(", {} more queries apart", more) : ""),
            .respecify = [size, more](const Specification& s) -> std::optional<Specification> {
                if (!has_left(s.problem)) return std::nullopt;
                Rules rules = rules_of(s);
                rules.also_hidden = [size, more, own = rules](const MaskPlace& p) {
                    const std::int64_t first = tile_begin(p.column, size.keys);
                    const std::int64_t begin =
                        more > 0 ? p.row - more : p.row / size.queries * size.queries;
                    return begin >= 0 && reach_of(own, p, begin).begin > first;
                };
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

}  // namespace

std::vector<Deviation> full_tiles(std::span<const std::int64_t> queries,
                                  std::span<const std::int64_t> keys, bool of_groups) {
    std::vector<Deviation> list;
    const auto add = [&](TileSize size) {
        for (const TakenForFull& what : taken_for_full)
            if ((size.queries > 1 || !what.of_rows) && (!size.clipped || what.as_clipped))
                list.push_back(not_asked(what, size));
        if (size.queries == 1 || size.clipped) return;
        list.push_back(keys_from_last_query(size));
        if (size.packed) return;
        list.push_back(queries_to_first_key(size, 0));
        list.push_back(queries_to_first_key(size, size.queries));
    };
    for (const std::int64_t q : queries)
        for (const std::int64_t k : keys)
            for (const bool packed : {false, true})
                for (const bool clipped : {true, false})
                    if (!packed || of_groups) add({q, k, packed, clipped});
    return list;
}

std::vector<Deviation> full_tiles(const std::vector<Evidence>& wrong) {
    constexpr std::int64_t queries[] = {1, 4, 8, 16, 32, 64, 128}, keys[] = {8, 16, 32, 64, 128};
    const auto masked = [](const Problem& p) {
        return p.mask.causal || has_left(p) || p.mask.tensor.kind == MaskKind::boolean;
    };
    std::vector<Deviation> list;
    const auto first =
        std::ranges::find_if(wrong, [&](const Evidence& e) { return masked(e.asked.problem); });
    if (first == wrong.end()) return list;
    for (Deviation& d : full_tiles(queries, keys, true))
        if (agrees(d, *first)) list.push_back(std::move(d));
    return list;
}

}  // namespace attest::diagnosis
