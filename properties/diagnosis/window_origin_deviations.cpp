// A window one of whose limits is counted from elsewhere: another row, the first or last query of a
// block, the edge of a tile, the start of a chunk; or means what another framework means by it.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// From which position one side of a window is counted; offset: what stands before row 0.
using OriginOf =
    std::function<std::int64_t(const MaskPlace&, std::int64_t offset, std::int64_t group)>;

/// What hides a key in the place of one limit of a window; offset as above, reach: how many keys
/// away from its origin the limit is.
/// group: query heads a key head.
using HidesOf = std::function<bool(const MaskPlace&, std::int64_t offset, std::int64_t reach,
                                   std::int64_t group)>;

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
                                     group = group_size(s.problem),
                                     top_left = rules.window_top_left](const MaskPlace& p) {
                    return hides(p, top_left ? 0 : p.len_kv - p.len_q, reach, group);
                };
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

Deviation one_side(std::string id, std::string says, bool left, OriginOf origin) {
    return other_limit(std::move(id), std::move(says), left,
                       [left, origin = std::move(origin)](const MaskPlace& p, std::int64_t offset,
                                                          std::int64_t reach, std::int64_t group) {
                           const std::int64_t at = origin(p, offset, group);
                           return left ? p.column < at - reach : p.column > at + reach;
                       });
}

/// A tile at a limit is shown whole: its keys are not asked one by one.
Deviation whole_tile(bool left, std::int64_t tile) {
    return other_limit(
        fmt::format("window_{}_whole_tile_{}", left ? "left" : "right", tile),
        fmt::format("a window whose {} tile of {} keys is shown whole", left ? "first" : "last",
                    tile),
        left,
        [left, tile](const MaskPlace& p, std::int64_t offset, std::int64_t reach, std::int64_t) {
            const std::int64_t at = p.row + offset;
            return left ? p.column < tile_begin(at - reach, tile)
                        : p.column >= tile_begin(at + reach, tile) + tile;
        });
}

Deviation whole_page(bool left) {
    return {.id = fmt::format("window_{}_whole_page", left ? "left" : "right"),
            .says = fmt::format("a window whose {} page is shown whole", left ? "first" : "last"),
            .respecify = [left](const Specification& s) -> std::optional<Specification> {
                const std::int64_t page = s.problem.cache.page_size;
                return page > 0 ? whole_tile(left, page).respecify(s) : std::nullopt;
            },
            .tells = law::Tells::visibility};
}

/// Where the left limit leaves out no key, a window is taken for none.
Deviation of_block(bool left, std::int64_t block, bool packed, bool last) {
    return one_side(
        fmt::format("window_{}_of_{}_{}{}", left ? "left" : "right", last ? "last" : "first",
                    packed ? "packed_" : "", block),
        fmt::format("a window's {} limit that of the {} query in its block of {}",
                    left ? "left" : "right", last ? "last" : "first", rows_of_block(block, packed)),
        left, [=](const MaskPlace& p, std::int64_t offset, std::int64_t group) {
            const BlockOfRows own = block_of(p, block, packed ? group : 1);
            return (last ? own.last : own.first) + offset;
        });
}

/// A loop over tiles of keys that begins, or ends, at the edge inside the limit.
Deviation tile_rounded_inwards(bool left, std::int64_t block, bool packed, std::int64_t tile) {
    return other_limit(
        fmt::format("window_{}_inwards_{}{}_{}", left ? "left" : "right", packed ? "packed_" : "",
                    block, tile),
        fmt::format("a window whose {} limit is moved inwards to a multiple of {} keys, that of {} "
                    "query in its block of {}",
                    left ? "left" : "right", tile, left ? "the first" : "the last",
                    rows_of_block(block, packed)),
        left, [=](const MaskPlace& p, std::int64_t offset, std::int64_t reach, std::int64_t group) {
            const BlockOfRows own = block_of(p, block, packed ? group : 1);
            const std::int64_t at = p.row + offset;
            if (left ? p.column < at - reach : p.column > at + reach) return true;
            const std::int64_t limit = left ? std::max<std::int64_t>(own.first + offset - reach, 0)
                                            : own.last + offset + reach + 1;
            return left ? p.column < tile_begin(limit + tile - 1, tile)
                        : limit < p.len_kv && p.column >= tile_begin(limit, tile);
        });
}

/// A limit that is taken for none where it stands alone.
Deviation side_alone_ignored(bool left) {
    const std::string own = left ? "left" : "right", other = left ? "right" : "left";
    return {
        .id = "window_" + own + "_alone_ignored",
        .says = "no limit to the " + own + " of a window that has none to the " + other,
        .respecify = [left](const Specification& s) -> std::optional<Specification> {
            const Window window = s.problem.mask.window;
            if ((left ? window.left : window.right) < 0 || (left ? window.right : window.left) >= 0)
                return std::nullopt;
            Rules rules = rules_of(s);
            rules.window = {};
            return with_rules(s, rules);
        },
        .tells = law::Tells::visibility};
}

/// A limit of 0 taken for none.
Deviation side_of_zero_ignored(bool left) {
    const std::string side = left ? "left" : "right";
    return {.id = "window_" + side + "_of_zero_ignored",
            .says = "no limit to the " + side + " of a window where it is 0",
            .respecify = [left](const Specification& s) -> std::optional<Specification> {
                Rules rules = rules_of(s);
                std::int64_t& limit = left ? rules.window.left : rules.window.right;
                if (limit != 0) return std::nullopt;
                limit = -1;
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

/// The limit less one, of a window whose limits are exclusive.
Deviation own_key_hidden(bool left) {
    const std::string side = left ? "left" : "right";
    Deviation d =
        one_side("window_" + side + "_of_zero_hides_own",
                 "a window that hides the query's own key where its " + side + " limit is 0", left,
                 [left](const MaskPlace& p, std::int64_t offset, std::int64_t) {
                     return p.row + offset + (left ? 1 : -1);
                 });
    d.respecify = [left, own = d.respecify](const Specification& s) {
        const Window& window = s.problem.mask.window;
        return (left ? window.left : window.right) == 0 ? own(s) : std::nullopt;
    };
    return d;
}

Deviation own_key_hidden_by_either() {
    return {.id = "window_of_zero_hides_own",
            .says = "a window that hides the query's own key where a limit is 0",
            .respecify = [left = own_key_hidden(true), right = own_key_hidden(false)](
                             const Specification& s) -> std::optional<Specification> {
                return s.problem.mask.window.left == 0 ? left.respecify(s) : right.respecify(s);
            },
            .tells = law::Tells::visibility};
}

Deviation no_window_where_left_covers(std::int64_t short_of) {
    const std::string more = short_of == 0 ? "Tk" : "Tk - " + std::to_string(short_of);
    return {.id = "window_ignored_at_left_" + std::to_string(short_of),
            .says = "no window where its left limit is " + more + " or more",
            .respecify = [short_of](const Specification& s) -> std::optional<Specification> {
                const Window window = s.problem.mask.window;
                if (window.right < 0 || window.left < s.problem.len_kv - short_of)
                    return std::nullopt;
                Rules rules = rules_of(s);
                rules.window = {};
                return with_rules(s, rules);
            },
            .tells = law::Tells::visibility};
}

/// Chunked attention: the query's own chunk, of as many keys as the limit and `more`.
Deviation own_chunk(std::int64_t more) {
    return other_limit(
        fmt::format("window_left_chunk_{}", more),
        fmt::format("a window to the left that begins at multiples of its {}, instead of sliding",
                    more == 1 ? "width" : "limit"),
        true, [more](const MaskPlace& p, std::int64_t offset, std::int64_t reach, std::int64_t) {
            const std::int64_t chunk = std::max<std::int64_t>(reach + more, 1);
            return p.column < tile_begin(std::max<std::int64_t>(p.row + offset, 0), chunk);
        });
}

/// The width of the whole window, half of it on each side.
Deviation half_as_wide() {
    return other_limit("window_left_halved", "a window half as wide to the left as it is asked for",
                       true,
                       [](const MaskPlace& p, std::int64_t offset, std::int64_t reach,
                          std::int64_t) { return p.column < p.row + offset - reach / 2; });
}

/// Sink tokens: the first keys stay visible, whatever the window; where there are sinks alone, if
/// `of_sinks`.
Deviation first_keys_kept(std::int64_t first, bool of_sinks) {
    Deviation d = other_limit(
        fmt::format("window_keeps_first_{}{}", first, of_sinks ? "_beside_sinks" : ""),
        fmt::format("a window that never hides the first {} to the left{}",
                    first == 1 ? "key" : fmt::format("{} keys", first),
                    of_sinks ? ", where there are sinks" : ""),
        true, [first](const MaskPlace& p, std::int64_t offset, std::int64_t reach, std::int64_t) {
            return p.column >= first && p.column < p.row + offset - reach;
        });
    if (of_sinks)
        d.respecify = [own = d.respecify](const Specification& s) {
            return s.problem.sink ? own(s) : std::nullopt;
        };
    return d;
}

}  // namespace

std::vector<Deviation> window_limits() {
    std::vector<Deviation> list{
        no_window_where_left_covers(0), no_window_where_left_covers(1), side_alone_ignored(false),
        side_alone_ignored(true),       side_of_zero_ignored(false),    side_of_zero_ignored(true),
        own_key_hidden_by_either(),     own_key_hidden(false),          own_key_hidden(true)};
    for (const bool left : {true, false}) {
        const std::string side = left ? "left" : "right", id = "window_" + side + "_";
        list.push_back(one_side(
            id + "from_row",
            "a window's " + side + " limit counted from the query's own number, not its position",
            left, [](const MaskPlace& p, std::int64_t, std::int64_t) { return p.row; }));
        list.push_back(one_side(
            id + "from_packed_row",
            "a window's " + side + " limit counted from the row among all of its group's heads",
            left, [](const MaskPlace& p, std::int64_t offset, std::int64_t group) {
                return p.row * group + p.head % group + offset;
            }));
        list.push_back(one_side(
            id + "from_packed_row_held",
            "a window's " + side +
                " limit counted from the row among all of its group's heads, but of the last query "
                "at most",
            left, [](const MaskPlace& p, std::int64_t offset, std::int64_t group) {
                return std::min(p.row * group + p.head % group, p.len_q - 1) + offset;
            }));
        // The query's own key is hidden where the limit is 0.
        list.push_back(one_side(
            id + "one_fewer", "a window one key narrower on the " + side + ", at a limit of 0, too",
            left, [left](const MaskPlace& p, std::int64_t offset, std::int64_t) {
                return p.row + offset + (left ? 1 : -1);
            }));
    }
    return list;
}

std::vector<Deviation> window_origins() {
    std::vector<Deviation> list = window_limits();
    for (const bool left : {true, false}) {
        for (const std::int64_t block : {16, 32, 64, 128, 8, 4, 2})
            for (const bool packed : {false, true})
                for (const bool last : {false, true})
                    list.push_back(of_block(left, block, packed, last));
        for (const bool packed : {false, true})
            for (const std::int64_t block : {16, 32, 64, 128, 8, 1})
                for (const std::int64_t tile : {16, 32, 64, 128})
                    list.push_back(tile_rounded_inwards(left, block, packed, tile));
        for (const std::int64_t tile : {16, 32, 64, 128}) list.push_back(whole_tile(left, tile));
        list.push_back(whole_page(left));
    }
    list.push_back(half_as_wide());
    for (const std::int64_t more : {0, 1}) list.push_back(own_chunk(more));
    for (const bool of_sinks : {true, false})
        for (const std::int64_t first : {1, 4}) list.push_back(first_keys_kept(first, of_sinks));
    return list;
}

}  // namespace attest::diagnosis
