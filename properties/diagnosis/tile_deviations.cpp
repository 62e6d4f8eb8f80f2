// Keys lost at the edges of tiles: those of a window's first or last tile, one key of each tile;
// and a window at the end of the keys.

#include <algorithm>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// The first and the last key of a query's window, counted in its sequence or document; none past
/// its ends.
struct WindowSpan {
    std::int64_t first = 0, last = 0;
};

WindowSpan window_span(const Rules& rules, const MaskPlace& p) {
    const auto reach = [&](std::int64_t limit) {
        return rules.ends == WindowEnds::exclusive && limit > 0 ? limit - 1 : limit;
    };
    const std::int64_t at = p.row + (rules.window_top_left ? 0 : p.len_kv - p.len_q);
    const Window& w = rules.window;
    const std::int64_t last = w.right >= 0 ? at + reach(w.right) : p.len_kv - 1;
    return {w.left >= 0 ? std::max<std::int64_t>(0, at - reach(w.left)) : 0,
            std::min(rules.causal ? std::min(last, at) : last, p.len_kv - 1)};
}

/// `whole`: also where the window then has no key left.
Deviation first_window_tile(std::int64_t tile, bool whole) {
    return {
        .id = "window_first_tile_" + std::string(whole ? "" : "but_last_") + std::to_string(tile),
        .says = "a window that begins with its first whole tile of " + std::to_string(tile) +
                " keys" + (whole ? "" : ", where it has one"),
        .respecify = [tile, whole](const Specification& s) -> std::optional<Specification> {
            if (s.problem.mask.window.left < 0) return std::nullopt;
            Rules rules = rules_of(s);
            rules.also_hidden = [tile, whole, own = rules](const MaskPlace& p) {
                const WindowSpan span = window_span(own, p);
                const std::int64_t begin = (span.first + tile - 1) / tile * tile;
                return p.column < begin && (whole || begin <= span.last);
            };
            return with_rules(s, rules);
        }};
}

/// Tiles of as many queries as keys; the first query's window decides for all of them.
Deviation first_window_tile_of_block(std::int64_t tile) {
    return {.id = "window_first_tile_of_block_" + std::to_string(tile),
            .says = "in each block of " + std::to_string(tile) +
                    " queries no key before the first whole tile of " + std::to_string(tile) +
                    " in its first query's window",
            .respecify = [tile](const Specification& s) -> std::optional<Specification> {
                if (s.problem.mask.window.left < 0) return std::nullopt;
                Rules rules = rules_of(s);
                rules.also_hidden = [tile, own = rules](MaskPlace p) {
                    p.row = p.row / tile * tile;
                    return p.column < (window_span(own, p).first + tile - 1) / tile * tile;
                };
                return with_rules(s, rules);
            }};
}

Deviation last_window_tile(std::int64_t tile) {
    return {
        .id = "window_last_tile_" + std::to_string(tile),
        .says = "a window that ends with its last whole tile of " + std::to_string(tile) + " keys",
        .respecify = [tile](const Specification& s) -> std::optional<Specification> {
            if (s.problem.mask.window.right < 0) return std::nullopt;
            Rules rules = rules_of(s);
            rules.also_hidden = [tile, own = rules](const MaskPlace& p) {
                const std::int64_t end = window_span(own, p).last + 1;
                return end < p.len_kv && p.column >= end / tile * tile;
            };
            return with_rules(s, rules);
        }};
}

Deviation one_key_of_each(std::int64_t tile, bool last) {
    return {.id = "tile_without_" + std::string(last ? "last_" : "first_") + std::to_string(tile),
            .says = last ? "attention without the last key of each " + std::to_string(tile)
                         : "attention without the first key of each " + std::to_string(tile) +
                               " but the first",
            .respecify = [tile, last](const Specification& s) -> std::optional<Specification> {
                if (s.problem.len_kv < tile) return std::nullopt;
                Rules rules = rules_of(s);
                rules.also_hidden = [tile, last](const MaskPlace& p) {
                    if (p.column < 0 || p.column >= p.len_kv) return false;
                    return last ? p.column % tile == tile - 1
                                : p.column > 0 && p.column % tile == 0;
                };
                return with_rules(s, rules);
            }};
}

/// The last keys of a sequence for every query, as one that decodes alone would see them.
Deviation window_from_last_key() {
    return {.id = "window_from_last_key",
            .says = "a window counted from the last key, whatever the query",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                const Window window = s.problem.mask.window;
                if (window.left < 0) return std::nullopt;
                Rules rules = rules_of(s);
                rules.window.left = -1;
                rules.also_hidden = [window, ends = rules.ends](const MaskPlace& p) {
                    const std::int64_t own = p.len_kv - 1 - p.column;
                    return ends == WindowEnds::exclusive && window.left > 0 ? own >= window.left
                                                                            : own > window.left;
                };
                return with_rules(s, rules);
            }};
}

}  // namespace

std::vector<Deviation> tile_deviations() {
    std::vector<Deviation> list{window_from_last_key()};
    for (const std::int64_t tile : {16, 32, 64, 128}) {
        list.push_back(first_window_tile(tile, true));
        list.push_back(first_window_tile(tile, false));
        list.push_back(first_window_tile_of_block(tile));
        list.push_back(last_window_tile(tile));
        list.push_back(one_key_of_each(tile, true));
        list.push_back(one_key_of_each(tile, false));
    }
    for (Deviation& d : list) d.tells = law::Tells::visibility;
    return list;
}

}  // namespace attest::diagnosis
