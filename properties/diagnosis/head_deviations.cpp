// Heads and sequences mixed up: the wrong key/value head, or batch 0 for everyone.

#include <algorithm>
#include <bit>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

using HeadOf = std::function<std::int64_t(const Problem&, std::int64_t)>;

// Query head h reads key/value head head_of(h): K and V repeated to as many heads as queries. None
// where head_of leaves the heads there are. `alone`: of K or of V, the other read rightly.
std::optional<Specification> with_heads(const Specification& s,
                                        const std::function<std::int64_t(std::int64_t)>& head_of,
                                        std::optional<Role> alone) {
    for (std::int64_t h = 0; h < s.problem.heads_q; ++h)
        if (head_of(h) < 0 || head_of(h) >= s.problem.heads_kv) return std::nullopt;
    Specification out = s;
    for (const Role role : {Role::k, Role::v}) {
        const Tensor& from = s.inputs[role];
        Shape shape = from.shape();
        shape[1] = s.problem.heads_q;
        const bool right = alone && *alone != role;
        out.inputs.put(role,
                       remake(from.type(), shape,
                              [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
                                  const std::int64_t own = h / group_size(s.problem);
                                  return from.at(b, right ? own : head_of(h), t, c);
                              }));
    }
    out.problem.heads_kv = s.problem.heads_q;
    return out;
}

Deviation mapping_deviation(std::string id, std::string says, HeadOf head_of,
                            std::optional<Role> alone = std::nullopt) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [head_of = std::move(head_of),
                          alone](const Specification& s) -> std::optional<Specification> {
                const Problem& problem = s.problem;
                bool differs = false;
                for (std::int64_t h = 0; h < problem.heads_q; ++h)
                    differs = differs || head_of(problem, h) != h / group_size(problem);
                if (!differs) return std::nullopt;
                return with_heads(
                    s, [&](std::int64_t h) { return head_of(problem, h); }, alone);
            }};
}

Deviation batch_deviation(std::string id, std::string says, std::vector<Role> roles) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify =
                [roles = std::move(roles)](const Specification& s) -> std::optional<Specification> {
                if (s.problem.batch < 2) return std::nullopt;
                Specification out = s;
                for (const Role role : roles) {
                    const Tensor& from = s.inputs[role];
                    out.inputs.put(role,
                                   remake(from.type(), from.shape(),
                                          [&](std::int64_t, std::int64_t h, std::int64_t t,
                                              std::int64_t c) { return from.at(0, h, t, c); }));
                }
                return out;
            }};
}

// Of 1 or more heads the power of two up to it.
std::int64_t power_of_two_up_to(std::int64_t n) {
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
}

}  // namespace

std::vector<Deviation> other_heads() {
    const auto last_at_most = [](const Problem& p, std::int64_t head) {
        return std::min(head, p.heads_kv - 1);
    };
    std::vector<Deviation> list{
        mapping_deviation(
            "heads_group_power",
            "groups of heads rounded down to a power of two, the last key/value head beyond them",
            [=](const Problem& p, std::int64_t h) {
                return last_at_most(p, h / power_of_two_up_to(group_size(p)));
            }),
        mapping_deviation("heads_group_power_modulo",
                          "groups of heads rounded down to a power of two, modulo Hkv",
                          [](const Problem& p, std::int64_t h) {
                              return h / power_of_two_up_to(group_size(p)) % p.heads_kv;
                          }),
        mapping_deviation(
            "heads_modulo_group", "query head h reading key/value head h mod (Hq / Hkv)",
            [=](const Problem& p, std::int64_t h) { return last_at_most(p, h % group_size(p)); }),
        mapping_deviation("heads_as_queries",
                          "query head h reading key/value head h, the last one beyond them",
                          last_at_most),
        mapping_deviation("heads_one_later",
                          "query head h reading the key/value head of head h + 1",
                          [=](const Problem& p, std::int64_t h) {
                              return last_at_most(p, (h + 1) / group_size(p));
                          }),
        mapping_deviation(
            "heads_next", "each query head reading the next key/value head",
            [](const Problem& p, std::int64_t h) { return (h / group_size(p) + 1) % p.heads_kv; }),
        mapping_deviation("heads_last", "every query head reading the last key/value head",
                          [](const Problem& p, std::int64_t) { return p.heads_kv - 1; }),
    };
    for (const std::int64_t group : {2, 4, 8, 16})
        list.push_back(mapping_deviation(
            "heads_group_" + std::to_string(group),
            "groups of " + std::to_string(group) + " heads whatever Hq / Hkv",
            [=](const Problem& p, std::int64_t h) { return last_at_most(p, h / group); }));
    return list;
}

std::vector<Deviation> head_deviations() {
    const auto declared = [](const Specification&) -> std::string {
        return "query head h reads key/value head floor(h / (Hq / Hkv))";
    };
    std::vector<Deviation> list{
        mapping_deviation("heads_modulo", "query head h reading key/value head h mod Hkv",
                          [](const Problem& p, std::int64_t h) { return h % p.heads_kv; }),
        mapping_deviation("heads_divided_by_kv", "query head h reading key/value head h / Hkv",
                          [](const Problem& p, std::int64_t h) { return h / p.heads_kv; }),
        mapping_deviation("heads_group_padded", "groups of heads rounded up to a power of two",
                          [](const Problem& p, std::int64_t h) {
                              return h / power_of_two_at_least(group_size(p));
                          }),
        mapping_deviation("heads_first", "every query head reading key/value head 0",
                          [](const Problem&, std::int64_t) { return std::int64_t{0}; }),
        mapping_deviation(
            "heads_reversed", "key/value heads in reverse order",
            [](const Problem& p, std::int64_t h) { return p.heads_kv - 1 - h / group_size(p); }),
    };
    for (const Role role : {Role::k, Role::v}) {
        const std::string what = role == Role::k ? "keys" : "values";
        list.push_back(mapping_deviation(
            "heads_modulo_" + what, "query head h reading the " + what + " alone of head h mod Hkv",
            [](const Problem& p, std::int64_t h) { return h % p.heads_kv; }, role));
        list.push_back(mapping_deviation(
            "heads_first_" + what, "every query head reading the " + what + " alone of head 0",
            [](const Problem&, std::int64_t) { return std::int64_t{0}; }, role));
    }
    for (Deviation& d : list) d.declares = declared;
    list.push_back(batch_deviation("batch_first", "every sequence as if it were the first",
                                   {Role::q, Role::k, Role::v}));
    list.push_back(batch_deviation("batch_first_keys_values",
                                   "every sequence reading the keys and values of the first",
                                   {Role::k, Role::v}));
    list.push_back(batch_deviation("batch_first_values",
                                   "every sequence reading the values of the first", {Role::v}));
    return list;
}

}  // namespace attest::diagnosis
