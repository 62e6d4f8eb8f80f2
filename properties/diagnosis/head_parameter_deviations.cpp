// One number a head, a slope of ALiBi or a sink, taken of another head.

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
    };
    for (const OtherHead& other : other_heads_of_numbers) add(other);
    for (const std::int64_t n : {64, 32, 16, 8, 4, 2}) add(modulo(n));
    return list;
}

}  // namespace attest::diagnosis
