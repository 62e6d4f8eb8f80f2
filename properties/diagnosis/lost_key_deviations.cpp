// Keys that are lost in part or at the end: a value that is not added though its weight is in the
// sum, a short rest of a tile, a last key read from the place before its own.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// Whether key j of n, or its value alone, is lost.
using LostOf = bool (*)(std::int64_t j, std::int64_t n, std::int64_t tile);

Deviation values_lost(std::string id, std::string says, std::int64_t tile, LostOf lost) {
    return weight_deviation(std::move(id), std::move(says),
                            [tile, lost](const Specification&, const oracle::RowDetail& row,
                                         KeyExtent span) -> std::optional<WeightChange> {
                                WeightChange change{std::vector<double>(row.scores.size()), 0.0};
                                const std::int64_t n = span.end - span.begin;
                                for (std::int64_t j = 0; j < n; ++j)
                                    if (lost(j, n, tile))
                                        change.numerator[static_cast<std::size_t>(span.begin + j)] =
                                            -infinite;
                                return change;
                            });
}

Deviation keys_lost(std::string id, std::string says, std::int64_t tile, LostOf lost) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify =
                [tile, lost](const Specification& s) {
                    return hiding(s, [tile, lost](const MaskPlace& p) {
                        return p.column >= 0 && p.column < p.len_kv &&
                               lost(p.column, p.len_kv, tile);
                    });
                },
            .tells = law::Tells::visibility};
}

struct LostPlace {
    const char *id, *words;
    LostOf lost;
};
constexpr LostPlace lost_places[] = {
    {"last", "the last of each {} keys",
     [](std::int64_t j, std::int64_t, std::int64_t t) { return j % t == t - 1; }},
    {"last_before_more", "the last of each {} keys behind which there are more",
     [](std::int64_t j, std::int64_t n, std::int64_t t) { return j % t == t - 1 && j + 1 < n; }},
    {"first_of_next", "the first of each {} keys but those of the first tile",
     [](std::int64_t j, std::int64_t, std::int64_t t) { return j >= t && j % t == 0; }},
    {"first_of_rest", "the first of the last n mod {} keys",
     [](std::int64_t j, std::int64_t n, std::int64_t t) { return n % t != 0 && j == n / t * t; }},
    {"past_tiles", "the last n mod {} keys",
     [](std::int64_t j, std::int64_t n, std::int64_t t) { return n > t && j >= n / t * t; }}};

// Keys of past_tiles are tail_dropped()'s.
void add_lost(std::vector<Deviation>& list, std::int64_t tile) {
    for (const LostPlace& place : lost_places) {
        const std::string words = fmt::format(fmt::runtime(place.words), tile);
        list.push_back(values_lost(fmt::format("values_lost_{}_{}", place.id, tile),
                                   "a sum of weights of all keys, but no value of " + words, tile,
                                   place.lost));
        if (&place != std::end(lost_places) - 1)
            list.push_back(keys_lost(fmt::format("keys_lost_{}_{}", place.id, tile),
                                     "attention without " + words, tile, place.lost));
    }
}

/// Whoever takes the rest of a tile in steps of several keys forgets one that is shorter.
Deviation short_rest_dropped(std::int64_t tile, std::int64_t least) {
    return {.id = fmt::format("rest_below_{}_of_{}_dropped", least, tile),
            .says = fmt::format("attention without the last n mod {0} keys where these are fewer "
                                "than {1} and n > {0}",
                                tile, least),
            .respecify =
                [tile, least](const Specification& s) {
                    return hiding(s, [tile, least](const MaskPlace& p) {
                        return p.len_kv > tile && p.len_kv % tile < least &&
                               p.column >= p.len_kv / tile * tile && p.column < p.len_kv;
                    });
                },
            .tells = law::Tells::visibility};
}

/// A last key that is not the first slot of its page (or, where there are no pages, not the only
/// key of its sequence) is taken for the one before.
Deviation last_key_from_before(std::string id, const std::string& words, std::vector<Role> roles) {
    return {.id = "last_key_from_before" + std::move(id),
            .says = words + "the last key of each sequence read from the slot before its own",
            .respecify =
                [roles = std::move(roles)](const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (!p.mask.documents_kv.empty()) return std::nullopt;
                const std::int64_t page = p.cache.page_size > 0 ? p.cache.page_size : p.len_kv;
                bool differs = false;
                Specification out = s;
                for (const Role role : roles) {
                    const Tensor& t = s.inputs[role];
                    out.inputs.put(
                        role,
                        remake(t.type(), t.shape(),
                               [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t c) {
                                   const std::int64_t n = length_of(p.mask.lens_kv, p.len_kv, b);
                                   const bool moved = j + 1 == n && j % page > 0;
                                   differs = differs || moved;
                                   return t.at(b, h, moved ? j - 1 : j, c);
                               }));
                }
                return differs ? std::optional(std::move(out)) : std::nullopt;
            },
            .tells = law::Tells::visibility};
}

/// Of a sequence's last page in a cache so many keys; without pages, of a last tile of so many. A
/// tile of 0: nothing there.
Deviation last_page_dropped(std::string id, std::string says,
                            std::int64_t (*lost)(std::int64_t keys, std::int64_t slots),
                            std::int64_t tile = 0) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [lost, tile](const Specification& s) -> std::optional<Specification> {
                const bool paged = s.problem.cache.present && s.problem.cache.page_size > 0;
                const std::int64_t slots = paged ? s.problem.cache.page_size : tile;
                if (slots == 0) return std::nullopt;
                return hiding(s, [&](const MaskPlace& p) {
                    return p.column >= p.len_kv - lost(p.len_kv, slots) && p.column < p.len_kv;
                });
            },
            .tells = law::Tells::visibility};
}

/// A rest of 0 taken for the number of keys in the last page, or tile.
std::vector<Deviation> full_last_dropped() {
    const auto lost = [](std::int64_t keys, std::int64_t slots) {
        return keys % slots == 0 ? slots : 0;
    };
    const std::string id = "pages_full_last_dropped",
                      says = "attention without a sequence's last page where its keys fill it";
    std::vector<Deviation> list{last_page_dropped(id, says, lost)};
    for (const std::int64_t tile : {16, 32, 64, 128})
        list.push_back(as_form_of(
            id, last_page_dropped(fmt::format("{}_or_{}", id, tile),
                                  fmt::format("{}; without pages, without the last {} keys where "
                                              "the number of keys is a multiple of that",
                                              says, tile),
                                  lost, tile)));
    return list;
}

/// Where its slots' positions are counted back from the end of the axis.
Deviation ring_of_longest() {
    return {.id = "ring_of_longest",
            .says = "a ring buffer taken to hold the last keys before Tk in every sequence, not "
                    "those before its own length",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                if (!s.problem.cache.ring || s.problem.mask.lens_kv.empty()) return std::nullopt;
                const std::int64_t slots = (*cache_shape_of(s.problem, Role::k))[2];
                return hiding(s, [first = s.problem.len_kv - slots](const MaskPlace& p) {
                    return p.column < first;
                });
            },
            .tells = law::Tells::visibility};
}

}  // namespace

std::vector<Deviation> lost_keys() {
    std::vector<Deviation> list;
    for (const std::int64_t tile : {16, 32, 64, 128}) {
        add_lost(list, tile);
        for (const std::int64_t least : {4, 8, 16})
            if (least < tile) list.push_back(short_rest_dropped(tile, least));
    }
    list.push_back(last_key_from_before("", "", {Role::k, Role::v}));
    list.push_back(last_key_from_before("_keys", "of the keys alone: ", {Role::k}));
    list.push_back(last_key_from_before("_values", "of the values alone: ", {Role::v}));
    list.push_back(
        last_page_dropped("pages_last_of_one_key_dropped",
                          "attention without a sequence's last page where it holds one key",
                          [](std::int64_t keys, std::int64_t slots) {
                              return std::int64_t{(keys - 1) % slots == 0};
                          }));
    std::ranges::move(full_last_dropped(), std::back_inserter(list));
    list.push_back(ring_of_longest());
    return list;
}

}  // namespace attest::diagnosis
