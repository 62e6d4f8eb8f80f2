// One number a head, a slope of ALiBi or a sink, or one mask a head, taken of another head.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

struct OtherHead {
    std::string id, says;
    std::function<std::int64_t(const Problem&, std::int64_t h)> head;
};
const OtherHead other_heads_of_numbers[] = {
    {"group_first", "the first head of its group",
     [](const Problem& p, std::int64_t h) { return h / group_size(p) * group_size(p); }},
    {"group_place", "the head of its place in its group",
     [](const Problem& p, std::int64_t h) { return h % group_size(p); }},
    {"modulo_kv", "head h mod Hkv",
     [](const Problem& p, std::int64_t h) { return h % p.heads_kv; }},
    {"group_by_key_head", "the head in an array of [group, key head]",
     [](const Problem& p, std::int64_t h) {
         return h % group_size(p) * p.heads_kv + h / group_size(p);
     }},
    {"first", "the first head", [](const Problem&, std::int64_t) { return std::int64_t{0}; }},
    {"last", "the last head", [](const Problem& p, std::int64_t) { return p.heads_q - 1; }},
    {"before", "the head before",
     [](const Problem& p, std::int64_t h) { return (h + p.heads_q - 1) % p.heads_q; }},
    {"reversed", "the heads in reverse order",
     [](const Problem& p, std::int64_t h) { return p.heads_q - 1 - h; }},
};

Deviation of_other_head(std::vector<Role> roles, const std::string& id, const std::string& what,
                        const OtherHead& other) {
    return {.id = id + other.id,
            .says = what + other.says,
            .respecify = [roles = std::move(roles), head = other.head](
                             const Specification& s) -> std::optional<Specification> {
                bool differs = false;
                Specification out = s;
                for (const Role role : roles) {
                    if (!s.inputs.has(role)) continue;
                    const Tensor& numbers = s.inputs[role];
                    out = with_numbers_of_heads(out, role, [&](std::int64_t h) {
                        const double own = numbers.get(head(s.problem, h));
                        differs = differs || own != numbers.get(h);
                        return own;
                    });
                }
                return differs ? std::optional(std::move(out)) : std::nullopt;
            }};
}

/// Where each head has a mask of its own; of additive ones alone, or of both kinds.
Deviation mask_of_other_head(const OtherHead& other, bool additive) {
    return {.id = (additive ? "bias_of_head_" : "mask_of_head_") + other.id,
            .says = std::string(additive ? "the additive mask of " : "the mask tensor of ") +
                    other.says,
            .respecify = [additive, head = other.head](
                             const Specification& s) -> std::optional<Specification> {
                const bool has = additive ? s.problem.mask.tensor.kind == MaskKind::additive
                                          : s.problem.mask.tensor.kind != MaskKind::none;
                if (!has || s.inputs[Role::mask].shape()[1] == 1) return std::nullopt;
                const Tensor& mask = s.inputs[Role::mask];
                bool differs = false;
                Specification out = s;
                out.inputs.put(
                    Role::mask,
                    remake(mask.type(), mask.shape(),
                           [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                               const double v = mask.at(b, head(s.problem, h), i, j);
                               differs = differs || v != mask.at(b, h, i, j);
                               return v;
                           }));
                return differs ? std::optional(std::move(out)) : std::nullopt;
            },
            .tells = law::Tells::visibility};
}

OtherHead modulo(std::int64_t n) {
    return {"modulo_" + std::to_string(n), "head h mod " + std::to_string(n),
            [n](const Problem&, std::int64_t h) { return h % n; }};
}

}  // namespace

std::vector<Deviation> numbers_of_other_heads() {
    std::vector<Deviation> list;
    const auto add = [&list](const OtherHead& other) {
        list.push_back(
            of_other_head({Role::alibi_slopes}, "alibi_of_", "the ALiBi slope of ", other));
        list.push_back(of_other_head({Role::sinks}, "sink_of_", "the sink of ", other));
        list.push_back(of_other_head({Role::alibi_slopes, Role::sinks}, "alibi_and_sink_of_",
                                     "the ALiBi slope and the sink of ", other));
        // That of the first head for all is listed (mask_tensor_deviations.cpp).
        const bool listed = other.id == "first";
        const Deviation mask = mask_of_other_head(other, false);
        if (!listed) list.push_back(mask);
        list.push_back(
            as_form_of(listed ? "mask_of_first_head" : mask.id, mask_of_other_head(other, true)));
    };
    for (const OtherHead& other : other_heads_of_numbers) add(other);
    for (const std::int64_t n : {64, 32, 16, 8, 4, 2}) add(modulo(n));
    return list;
}

}  // namespace attest::diagnosis
