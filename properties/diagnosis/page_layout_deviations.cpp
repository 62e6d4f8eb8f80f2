// Pages whose axes are taken in another order than they have, or whose numbers are reckoned
// otherwise.

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "reference/problem/empty_slots.hpp"

namespace attest::diagnosis {

namespace {

/// A row of one head in one page: of all its rows, in memory, the one in the place where a row of
/// slots that hold all heads would be. What lies in a slot without a key is read, too.
std::optional<Specification> slots_before_heads(const Specification& s,
                                                const std::vector<Role>& roles) {
    const Problem& p = s.problem;
    const std::int64_t slots = p.cache.page_size, heads = p.heads_kv;
    if (!p.cache.present || slots < 2 || heads < 2) return std::nullopt;
    bool differs = false;
    Specification out = s;
    for (const Role role : roles) {
        const Tensor& t = s.inputs[role];
        const auto read = [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t c) {
            if (j >= length_of(p.mask.lens_kv, p.len_kv, b)) return t.at(b, h, j, c);
            const std::int64_t row = j % slots * heads + h;
            const std::int64_t head = row / slots, key = j / slots * slots + row % slots;
            differs = differs || head != h || key != j;
            return key < length_of(p.mask.lens_kv, p.len_kv, b) ? t.at(b, head, key, c)
                                                                : in_empty_slots(s.dialect);
        };
        out.inputs.put(role, remake(t.type(), t.shape(), read));
    }
    return differs ? std::optional(std::move(out)) : std::nullopt;
}

Deviation heads_in_slots(const std::string& what, const std::string& words,
                         std::vector<Role> roles) {
    return {.id = "pages_of_slots_of_heads" + what,
            .says = words + "pages read as [slot, head, channel], not as [head, slot, channel]",
            .respecify = [roles = std::move(roles)](const Specification& s) {
                return slots_before_heads(s, roles);
            }};
}

/// The key in whose place, counted by a sequence's pages, key j is looked for.
using PlaceOf = std::int64_t (*)(std::int64_t j, std::int64_t slots);

/// Whether that place lies in a page that the sequence has none of.
bool in_no_page(std::int64_t place, std::int64_t keys, std::int64_t slots) {
    return place / slots >= (keys + slots - 1) / slots;
}

/// A key whose place lies in no page is not read; what lies in a slot without a key is read, too.
Deviation keys_from(std::string id, std::string says, PlaceOf place) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [place](const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                const std::int64_t slots = p.cache.page_size;
                if (!p.cache.present || slots == 0) return std::nullopt;
                bool differs = false;
                Specification out = s;
                for (const Role role : {Role::k, Role::v}) {
                    const Tensor& t = s.inputs[role];
                    const auto read = [&](std::int64_t b, std::int64_t h, std::int64_t j,
                                          std::int64_t c) {
                        const std::int64_t keys = length_of(p.mask.lens_kv, p.len_kv, b);
                        const std::int64_t from = j < keys ? place(j, slots) : j;
                        differs = differs || from != j;
                        if (from < keys || j >= keys) return t.at(b, h, from, c);
                        return in_no_page(from, keys, slots) ? t.at(b, h, j, c)
                                                             : in_empty_slots(s.dialect);
                    };
                    out.inputs.put(role, remake(t.type(), t.shape(), read));
                }
                if (!differs) return std::nullopt;
                return hiding(out, [slots, place](const MaskPlace& at) {
                    return at.column < at.len_kv &&
                           in_no_page(place(at.column, slots), at.len_kv, slots);
                });
            },
            .tells = law::Tells::visibility};
}

}  // namespace

std::vector<Deviation> page_layouts() {
    return {
        heads_in_slots("", "", {Role::k, Role::v}),
        heads_in_slots("_keys", "of the keys alone: ", {Role::k}),
        heads_in_slots("_values", "of the values alone: ", {Role::v}),
        keys_from(
            "pages_modulo_256", "page n mod 256 in place of page n: its number is kept in 8 bits",
            [](std::int64_t j, std::int64_t slots) { return j / slots % 256 * slots + j % slots; }),
        keys_from("pages_by_shift",
                  "the page and slot of a key by the shift and mask of the power of two below "
                  "the size of pages",
                  [](std::int64_t j, std::int64_t slots) {
                      const auto power = static_cast<std::int64_t>(
                          std::bit_floor(static_cast<std::uint64_t>(slots)));
                      return j / power * slots + j % power;
                  })};
}

}  // namespace attest::diagnosis
