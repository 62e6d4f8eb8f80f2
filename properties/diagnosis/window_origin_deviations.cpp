// A window one of whose limits is counted from elsewhere: another row, the first or last query of a
// block, the edge of a tile.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// From which position one side of a window is counted; offset: what stands before row 0.
using OriginOf = std::function<std::int64_t(const MaskPlace&, std::int64_t offset)>;

/// What hides a key in the place of one limit of a window; offset as above, reach: how many keys
/// away from its origin the limit is.
using HidesOf = std::function<bool(const MaskPlace&, std::int64_t offset, std::int64_t reach)>;

Deviation other_limit(std::string id, std::string says, bool left, HidesOf hides) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [left, hides = std::move(hides)](
                             const Specification& s) -> std::optional<Specification> {
                const Window window = s.problem.mask.window;
                const std::int64_t own = left ? window.left : window.right;
                if (own < 0) return std::nullopt;
                Rules rules = rules_of(s);
                (left ? rules.window.left : rules.window.right) = -1;
                const bool less = rules.ends == WindowEnds::exclusive && own > 0;
                rules.also_hidden = [hides, reach = less ? own - 1 : own,
                                     top_left = rules.window_top_left](const MaskPlace& p) {
                    return hides(p, top_left ? 0 : p.len_kv - p.len_q, reach);
                };
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

Deviation one_side(std::string id, std::string says, bool left, OriginOf origin) {
    return other_limit(std::move(id), std::move(says), left,
                       [left, origin = std::move(origin)](const MaskPlace& p, std::int64_t offset,
                                                          std::int64_t reach) {
                           const std::int64_t at = origin(p, offset);
                           return left ? p.column < at - reach : p.column > at + reach;
                       });
}

/// A tile at a limit is shown whole: its keys are not asked one by one.
Deviation whole_tile(bool left, std::int64_t tile) {
    return other_limit(fmt::format("window_{}_whole_tile_{}", left ? "left" : "right", tile),
                       fmt::format("a window whose {} tile of {} keys is shown whole",
                                   left ? "first" : "last", tile),
                       left,
                       [left, tile](const MaskPlace& p, std::int64_t offset, std::int64_t reach) {
                           const std::int64_t at = p.row + offset;
                           return left ? p.column < tile_begin(at - reach, tile)
                                       : p.column >= tile_begin(at + reach, tile) + tile;
                       });
}

}  // namespace

std::vector<Deviation> window_origins() {
    std::vector<Deviation> list;
    for (const bool left : {true, false}) {
        const std::string side = left ? "left" : "right", id = "window_" + side + "_";
        list.push_back(one_side(
            id + "from_row",
            "a window's " + side + " limit counted from the query's own number, not its position",
            left, [](const MaskPlace& p, std::int64_t) { return p.row; }));
        // The query's own key is hidden where the limit is 0.
        list.push_back(one_side(
            id + "one_fewer", "a window one key narrower on the " + side + ", at a limit of 0, too",
            left, [left](const MaskPlace& p, std::int64_t offset) {
                return p.row + offset + (left ? 1 : -1);
            }));
        for (const std::int64_t block : {16, 32, 64, 128, 8, 4, 2}) {
            const std::string of = std::to_string(block);
            list.push_back(one_side(
                id + "of_first_" + of,
                "a window's " + side + " limit that of the first query in its block of " + of, left,
                [block](const MaskPlace& p, std::int64_t offset) {
                    return p.row / block * block + offset;
                }));
            list.push_back(one_side(
                id + "of_last_" + of,
                "a window's " + side + " limit that of the last query in its block of " + of, left,
                [block](const MaskPlace& p, std::int64_t offset) {
                    return std::min(p.row / block * block + block, p.len_q) - 1 + offset;
                }));
        }
        for (const std::int64_t tile : {16, 32, 64, 128}) list.push_back(whole_tile(left, tile));
    }
    return list;
}

}  // namespace attest::diagnosis
