// Pages whose axes are taken in another order than they have.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// A row of one head in one page: of all its rows, in memory, the one in the place where a row of
/// slots that hold all heads would be. What lies in a slot without a key is NaN.
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
            return key < length_of(p.mask.lens_kv, p.len_kv, b)
                       ? t.at(b, head, key, c)
                       : std::numeric_limits<double>::quiet_NaN();
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

}  // namespace

std::vector<Deviation> page_layouts() {
    return {heads_in_slots("", "", {Role::k, Role::v}),
            heads_in_slots("_keys", "of the keys alone: ", {Role::k}),
            heads_in_slots("_values", "of the values alone: ", {Role::v})};
}

}  // namespace attest::diagnosis
