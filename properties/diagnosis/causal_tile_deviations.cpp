// Deviations of backward's causal mask where it is asked tile by tile: a tile at the diagonal shown
// whole, or passed over.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// The last key that a row sees, by the tile that its own last one, or the row itself, lies in.
struct TileLimit {
    const char *id, *says;
    std::int64_t (*of)(std::int64_t row, std::int64_t off, std::int64_t tile);
};

std::int64_t floored(std::int64_t n, std::int64_t tile) {
    return (n < 0 ? n - tile + 1 : n) / tile * tile;
}

constexpr TileLimit limits[] = {
    {"causal_tiles_top_left", "tiles of {} skipped as by a causal mask aligned top-left",
     [](std::int64_t row, std::int64_t off, std::int64_t tile) {
         return std::min(row + off, floored(row, tile) + tile - 1);
     }},
    {"causal_key_tile_shown", "all keys of the diagonal's tile of {}",
     [](std::int64_t row, std::int64_t off, std::int64_t tile) {
         return floored(row + off, tile) + tile - 1;
     }},
    {"causal_key_tile_lost", "no key of the diagonal's tile of {}",
     [](std::int64_t row, std::int64_t off, std::int64_t tile) {
         return floored(row + off, tile) - 1;
     }},
    {"causal_query_tile_shown", "in each tile of {} queries the keys of its last one",
     [](std::int64_t row, std::int64_t off, std::int64_t tile) {
         return floored(row, tile) + tile - 1 + off;
     }},
    {"causal_query_tile_lost", "in each tile of {} queries the keys of its first one",
     [](std::int64_t row, std::int64_t off, std::int64_t tile) {
         return floored(row, tile) + off;
     }},
};

/// The last key that a row sees instead of its own; off: keys before row 0.
using LastKey = std::function<std::int64_t(std::int64_t row, std::int64_t off)>;

BackwardDeviation seen_to(const std::string& id, const std::string& says, LastKey last,
                          bool plain_beyond) {
    return {.id = "backward_" + id,
            .says = "in backward alone: " + says,
            .respecify =
                [last = std::move(last)](const Specification& s) -> std::optional<Specification> {
                Rules rules = rules_of(s);
                if (!rules.causal || rules.causal_offset) return std::nullopt;
                rules.causal = false;
                rules.also_hidden = [last, top_left = rules.top_left](const MaskPlace& p) {
                    return p.column > last(p.row, top_left ? 0 : p.len_kv - p.len_q);
                };
                return with_rules(s, rules);
            },
            .plain_beyond = plain_beyond};
}

BackwardDeviation by_tiles(const TileLimit& limit, std::int64_t tile, bool plain_beyond) {
    return seen_to(
        fmt::format("{}_{}", limit.id, tile), fmt::format(fmt::runtime(limit.says), tile),
        [of = limit.of, tile](std::int64_t row, std::int64_t off) { return of(row, off, tile); },
        plain_beyond);
}

/// A tile of keys that begins before the first query of a tile is taken for one that all of its
/// queries see.
BackwardDeviation by_first_keys(std::int64_t queries, std::int64_t keys, bool plain_beyond) {
    return seen_to(
        fmt::format("causal_tile_first_key_{}_{}", queries, keys),
        fmt::format("no causal mask in a tile of {} keys that begins before the first of {} "
                    "queries",
                    keys, queries),
        [queries, keys](std::int64_t row, std::int64_t off) {
            const std::int64_t last_begun =
                floored(floored(row, queries) + off - 1, keys) + keys - 1;
            return std::max(row + off, last_begun);
        },
        plain_beyond);
}

}  // namespace

std::vector<BackwardDeviation> causal_tile_deviations() {
    std::vector<BackwardDeviation> list;
    for (const TileLimit& limit : limits)
        for (const std::int64_t tile : {4, 8, 16, 32, 64, 128})
            for (const bool plain_beyond : {false, true})
                list.push_back(by_tiles(limit, tile, plain_beyond));
    for (const std::int64_t queries : {8, 16, 32, 64, 128})
        for (const std::int64_t keys : {8, 16, 32, 64, 128})
            for (const bool plain_beyond : {false, true})
                list.push_back(by_first_keys(queries, keys, plain_beyond));
    return list;
}

}  // namespace attest::diagnosis
