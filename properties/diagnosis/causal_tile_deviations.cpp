// Deviations of backward's causal mask where it is asked tile by tile: a tile at the diagonal shown
// whole, or passed over.

#include <fmt/format.h>

#include <algorithm>

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

BackwardDeviation by_tiles(const TileLimit& limit, std::int64_t tile, bool plain_beyond) {
    return {
        .id = fmt::format("backward_{}_{}", limit.id, tile),
        .says = "in backward alone: " + fmt::format(fmt::runtime(limit.says), tile),
        .respecify = [of = limit.of, tile](const Specification& s) -> std::optional<Specification> {
            Rules rules = rules_of(s);
            if (!rules.causal || rules.causal_offset) return std::nullopt;
            rules.causal = false;
            rules.also_hidden = [=, top_left = rules.top_left](const MaskPlace& p) {
                return p.column > of(p.row, top_left ? 0 : p.len_kv - p.len_q, tile);
            };
            return with_rules(s, rules);
        },
        .plain_beyond = plain_beyond};
}

}  // namespace

std::vector<BackwardDeviation> causal_tile_deviations() {
    std::vector<BackwardDeviation> list;
    for (const TileLimit& limit : limits)
        for (const std::int64_t tile : {4, 8, 16, 32, 64, 128})
            for (const bool plain_beyond : {false, true})
                list.push_back(by_tiles(limit, tile, plain_beyond));
    return list;
}

}  // namespace attest::diagnosis
