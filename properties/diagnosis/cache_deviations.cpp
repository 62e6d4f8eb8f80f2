// Keys and values read elsewhere in a cache: another page, another slot of a ring.

#include <algorithm>
#include <cmath>
#include <map>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "reference/problem/empty_slots.hpp"

namespace attest::diagnosis {

namespace {

/// Where a cache holds a key; page: of a ring, the sequence.
struct CacheCell {
    std::int64_t page = 0, row = 0;
    auto operator<=>(const CacheCell&) const = default;
};
struct Key {
    std::int64_t sequence = 0, index = 0;
    bool operator==(const Key&) const = default;
};
using CellOf = std::function<CacheCell(const Specification&, const Key&)>;

std::int64_t keys_of(const Specification& s, std::int64_t b) {
    return length_of(s.problem.mask.lens_kv, s.problem.len_kv, b);
}
std::int64_t slots_of(const Specification& s) {
    return (*cache_shape_of(s.problem, Role::k))[2];
}
/// The oldest key that the cache holds of a sequence.
std::int64_t oldest_of(const Specification& s, std::int64_t b) {
    return s.problem.cache.ring ? std::max<std::int64_t>(keys_of(s, b) - slots_of(s), 0) : 0;
}
/// Page number `n` of the block table, counted through all its rows; none: -1.
std::int64_t page_at(const Specification& s, std::int64_t n) {
    const Tensor& table = s.inputs[Role::block_table];
    return n < table.size() ? static_cast<std::int64_t>(table.get(n)) : -1;
}
std::int64_t columns_of(const Specification& s) {
    return s.inputs[Role::block_table].shape()[1];
}

/// The key's slot in a page of its sequence.
CacheCell cell_in_page(const Specification& s, const Key& key, std::int64_t page) {
    return {page_at(s, key.sequence * columns_of(s) + page), key.index % slots_of(s)};
}

CacheCell right_cell(const Specification& s, const Key& key) {
    const std::int64_t slots = slots_of(s);
    if (s.problem.cache.ring) return {key.sequence, key.index % slots};
    return cell_in_page(s, key, key.index / slots);
}

template <typename Visit>
void for_each_held(const Specification& s, Visit visit) {
    for (std::int64_t b = 0; b < s.problem.batch; ++b)
        for (std::int64_t j = oldest_of(s, b); j < keys_of(s, b); ++j) visit(Key{b, j});
}

/// What lies where no key was laid; outside the cache, NaN.
double without_key(const Specification& s, const CacheCell& cell) {
    const Shape cache = *cache_shape_of(s.problem, Role::k);
    const bool inside = cell.page >= 0 && cell.page < cache[0] && cell.row < cache[2];
    return inside ? in_empty_slots(s.dialect) : std::nan("");
}

/// The cell of each key as the deviation reads it.
std::optional<Specification> reading(const Specification& s, const CellOf& cell_of,
                                     const std::vector<Role>& roles = {Role::k, Role::v}) {
    std::map<CacheCell, Key> held;
    for_each_held(s, [&](const Key& key) { held[right_cell(s, key)] = key; });
    bool differs = false;
    Specification out = s;
    for (const Role role : roles) {
        const Tensor& from = s.inputs[role];
        Tensor& to = out.inputs[role];
        for_each_held(s, [&](const Key& key) {
            const CacheCell cell = cell_of(s, key);
            const auto found = held.find(cell);
            if (found != held.end() && found->second == key) return;
            differs = true;
            for (std::int64_t h = 0; h < from.shape()[1]; ++h)
                for (std::int64_t c = 0; c < from.shape()[3]; ++c)
                    to.set(to.flat(key.sequence, h, key.index, c),
                           found == held.end()
                               ? without_key(s, cell)
                               : from.at(found->second.sequence, h, found->second.index, c));
        });
    }
    return differs ? std::optional(std::move(out)) : std::nullopt;
}

Deviation in_pages(std::string id, std::string says, CellOf cell_of,
                   std::vector<Role> roles = {Role::k, Role::v}) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [cell_of = std::move(cell_of), roles = std::move(roles)](
                             const Specification& s) -> std::optional<Specification> {
                if (!s.problem.cache.present || s.problem.cache.page_size == 0) return std::nullopt;
                return reading(s, cell_of, roles);
            }};
}

Deviation in_ring(std::string id, std::string says, CellOf cell_of) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [cell_of = std::move(cell_of)](
                             const Specification& s) -> std::optional<Specification> {
                if (!s.problem.cache.present || !s.problem.cache.ring) return std::nullopt;
                return reading(s, cell_of);
            }};
}

void add_pages(std::vector<Deviation>& list) {
    const auto row = [](const Specification& s, const Key& key) { return key.index % slots_of(s); };
    list.push_back(in_pages(
        "pages_in_order", "pages read in their order, without the block table",
        [row](const Specification& s, const Key& key) {
            return CacheCell{key.sequence * columns_of(s) + key.index / slots_of(s), row(s, key)};
        }));
    list.push_back(in_pages("pages_of_first", "every sequence reading the pages of the first",
                            [row](const Specification& s, const Key& key) {
                                return CacheCell{page_at(s, key.index / slots_of(s)), row(s, key)};
                            }));
    list.push_back(in_pages(
        "pages_of_own_columns",
        "block tables as if their rows ended with each sequence's own pages",
        [row](const Specification& s, const Key& key) {
            const std::int64_t slots = slots_of(s);
            const std::int64_t own = (keys_of(s, key.sequence) + slots - 1) / slots;
            return CacheCell{page_at(s, key.sequence * own + key.index / slots), row(s, key)};
        }));
    list.push_back(
        in_pages("pages_first_alone", "every key read from its sequence's first page",
                 [row](const Specification& s, const Key& key) {
                     return CacheCell{page_at(s, key.sequence * columns_of(s)), row(s, key)};
                 }));
    list.push_back(in_pages("pages_slot_by_bits",
                            "slots in a page = key & (page - 1), also of pages of no power of two",
                            [](const Specification& s, const Key& key) {
                                CacheCell cell = right_cell(s, key);
                                cell.row = key.index & (slots_of(s) - 1);
                                return cell;
                            }));
    for (const std::int64_t tile : {16, 32, 64, 128, 256})
        list.push_back(in_pages("pages_of_" + std::to_string(tile),
                                "pages found as if each held " + std::to_string(tile) + " keys",
                                [row, tile](const Specification& s, const Key& key) {
                                    return CacheCell{
                                        page_at(s, key.sequence * columns_of(s) + key.index / tile),
                                        row(s, key)};
                                }));
}

/// Slot n stands for key n: for its mask and its position. There is no key past the slots.
std::optional<Specification> slots_as_positions(const Specification& s) {
    if (!s.problem.cache.present || !s.problem.cache.ring) return std::nullopt;
    const std::int64_t slots = slots_of(s);
    Specification moved = s;
    bool differs = false;
    for_each_held(s, [&](const Key& key) {
        if (key.index % slots == key.index) return;
        differs = true;
        for (const Role role : {Role::k, Role::v})
            for (std::int64_t h = 0; h < s.problem.heads_kv; ++h)
                for (std::int64_t c = 0; c < s.inputs[role].shape()[3]; ++c)
                    moved.inputs[role].put(key.sequence, h, key.index % slots, c,
                                           s.inputs[role].at(key.sequence, h, key.index, c));
    });
    if (!differs) return std::nullopt;
    Rules rules = rules_of(s);
    rules.also_hidden = [slots](const MaskPlace& place) { return place.key >= slots; };
    return with_rules(moved, rules);
}

void add_rings(std::vector<Deviation>& list) {
    list.push_back({.id = "ring_slots_as_positions",
                    .says = "slots of a ring buffer taken for the positions of their keys",
                    .respecify = slots_as_positions});
    list.push_back(in_ring("ring_clamped",
                           "keys past the end of a ring buffer read from its last slot",
                           [](const Specification& s, const Key& key) {
                               return CacheCell{key.sequence, std::min(key.index, slots_of(s) - 1)};
                           }));
    list.push_back(
        in_ring("ring_in_order",
                "a ring buffer read in its order, as if the first slot held the oldest key",
                [](const Specification& s, const Key& key) {
                    return CacheCell{key.sequence, key.index - oldest_of(s, key.sequence)};
                }));
    list.push_back(
        in_ring("ring_of_window",
                "slots of a ring buffer = position mod the window instead of mod the slots",
                [](const Specification& s, const Key& key) {
                    const std::int64_t window = s.problem.mask.window.left + 1, slots = slots_of(s);
                    return CacheCell{key.sequence,
                                     key.index % (window < 1 ? slots : std::min(window, slots))};
                }));
    for (const std::int64_t by : {1, -1})
        list.push_back(in_ring(by > 0 ? "ring_next_slot" : "ring_slot_before",
                               by > 0
                                   ? "each key of a ring buffer read from the slot after its own"
                                   : "each key of a ring buffer read from the slot before its own",
                               [by](const Specification& s, const Key& key) {
                                   const std::int64_t slots = slots_of(s);
                                   return CacheCell{key.sequence, (key.index + by + slots) % slots};
                               }));
}

}  // namespace

std::vector<Deviation> cache_deviations() {
    std::vector<Deviation> list;
    add_pages(list);
    add_rings(list);
    return list;
}

namespace {

/// One slot of each page read from the page beside its own, where that has a key of the sequence.
struct SlotElsewhere {
    const char *id, *says;
    std::int64_t (*to)(std::int64_t slot, std::int64_t slots);  ///< pages further on
};
constexpr SlotElsewhere slots_elsewhere[] = {
    {"last_slot_of_next", "the last slot of each page read from the next page",
     [](std::int64_t slot, std::int64_t slots) { return std::int64_t{slot == slots - 1}; }},
    {"first_slot_of_last", "the first slot of each page read from the page before",
     [](std::int64_t slot, std::int64_t) { return -std::int64_t{slot == 0}; }},
    {"behind", "each key read from the page behind its own",
     [](std::int64_t, std::int64_t) { return std::int64_t{1}; }},
};

Deviation slot_elsewhere(const SlotElsewhere& which, const std::string& what,
                         const std::string& words, std::vector<Role> roles) {
    return in_pages(
        std::string("pages_") + which.id + what, words + which.says,
        [to = which.to](const Specification& s, const Key& key) {
            const std::int64_t slots = slots_of(s), slot = key.index % slots;
            const std::int64_t by = to(slot, slots);
            const std::int64_t column = key.index / slots + by;
            const bool there = column >= 0 && column * slots < keys_of(s, key.sequence);
            if (by == 0 || !there) return right_cell(s, key);
            return cell_in_page(s, key, column);
        },
        std::move(roles));
}

}  // namespace

std::vector<Deviation> pages_beside() {
    std::vector<Deviation> list;
    for (const SlotElsewhere& which : slots_elsewhere) {
        list.push_back(slot_elsewhere(which, "_values", "of the values alone: ", {Role::v}));
        list.push_back(slot_elsewhere(which, "_keys", "of the keys alone: ", {Role::k}));
        list.push_back(slot_elsewhere(which, "", "", {Role::k, Role::v}));
    }
    list.push_back(
        in_pages("pages_last_from_before", "an incomplete last page read from the page before",
                 [](const Specification& s, const Key& key) {
                     const std::int64_t slots = slots_of(s);
                     const std::int64_t whole = keys_of(s, key.sequence) / slots;
                     const std::int64_t own = key.index / slots;
                     return cell_in_page(s, key, own > 0 && own == whole ? own - 1 : own);
                 }));
    for (const std::int64_t kept : {256, 128})
        list.push_back(in_pages("page_numbers_modulo_" + std::to_string(kept),
                                "page n mod " + std::to_string(kept) +
                                    " of the pool in place of page n of it, whose number it is",
                                [kept](const Specification& s, const Key& key) {
                                    CacheCell cell = right_cell(s, key);
                                    cell.page %= kept;
                                    return cell;
                                }));
    for (const std::int64_t step : {4, 8, 16, 32, 64})
        list.push_back(in_pages(
            "pages_of_first_in_" + std::to_string(step),
            "the page of the first key of each " + std::to_string(step) + " for all of them",
            [step](const Specification& s, const Key& key) {
                return cell_in_page(s, key, key.index / step * step / slots_of(s));
            }));
    for (const std::int64_t tile : {16, 32, 64, 128})
        list.push_back(in_pages(
            "pages_first_slot_of_last_values_in_" + std::to_string(tile),
            "of the values alone: the first slot of each page read from the page before, but of "
            "the first key in " +
                std::to_string(tile),
            [tile](const Specification& s, const Key& key) {
                const std::int64_t slots = slots_of(s), column = key.index / slots;
                const bool before = key.index % slots == 0 && key.index % tile != 0;
                return cell_in_page(s, key, before ? column - 1 : column);
            },
            {Role::v}));
    return list;
}

}  // namespace attest::diagnosis
