// Positions taken wrongly, where a rotation tells them: in the wrong pairs, from the wrong origin,
// by other angles.

#include <cmath>
#include <utility>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rotation.hpp"

namespace attest::diagnosis {

namespace {

Deviation rope_deviation(std::string id, std::string says,
                         std::function<void(Specification&)> change) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [change = std::move(change)](
                             const Specification& s) -> std::optional<Specification> {
                if (!has_rope(s)) return std::nullopt;
                Specification out = s;
                change(out);
                if (out.problem == s.problem && out.inputs == s.inputs) return std::nullopt;
                return out;
            }};
}

// Keys turned further by so many positions; what is rotated already is not rotated twice.
using KeyTurn = double (*)(const Problem& asked, std::int64_t key);

Deviation keys_turned(std::string id, std::string says, KeyTurn by) {
    return rope_deviation(std::move(id), std::move(says), [by](Specification& s) {
        const Problem asked = s.problem;
        if (asked.cache.keys_rotated) return;
        bool any = false;
        for (std::int64_t j = 0; j < asked.len_kv; ++j) any = any || by(asked, j) != 0;
        if (!any) return;
        s.inputs.put(Role::k, turned(s, Role::k, [&asked, by](std::int64_t, std::int64_t j) {
                         return by(asked, j);
                     }));
    });
}

std::vector<Deviation> key_turns() {
    return {
        keys_turned("rope_queries_alone", "queries rotated and keys not",
                    [](const Problem& p, std::int64_t j) {
                        return -static_cast<double>(p.rope.offset + j);
                    }),
        keys_turned("rope_keys_backwards", "keys rotated the other way than queries",
                    [](const Problem& p, std::int64_t j) {
                        return -2 * static_cast<double>(p.rope.offset + j);
                    }),
        keys_turned(
            "rope_keys_without_offset", "keys rotated from position 0, not from the offset",
            [](const Problem& p, std::int64_t) { return -static_cast<double>(p.rope.offset); }),
        keys_turned("rope_keys_later_in_pages",
                    "keys rotated by one position too many behind their first page",
                    [](const Problem& p, std::int64_t j) {
                        const std::int64_t page = p.cache.page_size;
                        return page > 0 && j >= page ? 1.0 : 0.0;
                    }),
        keys_turned("rope_keys_later_each_page",
                    "keys rotated by one position too many for each page before theirs",
                    [](const Problem& p, std::int64_t j) {
                        const std::int64_t page = p.cache.page_size;
                        return page > 0 ? static_cast<double>(j / page) : 0.0;
                    }),
        keys_turned("rope_keys_in_page", "keys rotated by their place in their page",
                    [](const Problem& p, std::int64_t j) {
                        const std::int64_t page = p.cache.page_size;
                        return page > 0 ? -static_cast<double>(j / page * page) : 0.0;
                    }),
        keys_turned("rope_keys_in_slot", "keys rotated by their slot in the ring buffer",
                    [](const Problem& p, std::int64_t j) {
                        if (!p.cache.present || !p.cache.ring) return 0.0;
                        const std::int64_t slots = (*cache_shape_of(p, Role::k))[2];
                        return static_cast<double>(j % slots - j);
                    }),
        keys_turned("rope_new_keys_at_zero", "keys behind the cache rotated from position 0",
                    [](const Problem& p, std::int64_t j) {
                        return p.cache.present && j >= p.cache.len
                                   ? -static_cast<double>(p.rope.offset + p.cache.len)
                                   : 0.0;
                    }),
    };
}

// position * frequency rounded, in queries and keys.
Deviation angles_rounded(Precision format) {
    const std::string words = format == Precision::bf16 ? "bfloat16" : std::string(name(format));
    return rope_deviation("rope_angles_" + std::string(name(format)),
                          "angles of rotation rounded to " + words, [format](Specification& s) {
                              turn_by_positions(
                                  s, [format](std::int64_t, double position, double frequency) {
                                      const double angle = position * frequency;
                                      return round_to(angle, format) - angle;
                                  });
                          });
}

RopeStyle other_style(RopeStyle style) {
    return style == RopeStyle::half ? RopeStyle::interleaved : RopeStyle::half;
}

// Turned in the other pairs, and back in those in which they will be turned.
void keys_of_other_style(Specification& s) {
    if (s.problem.cache.keys_rotated) return;
    const std::int64_t offset = s.problem.rope.offset;
    const auto place = [offset](std::int64_t, std::int64_t j) {
        return static_cast<double>(offset + j);
    };
    Specification other = s;
    other.problem.rope.style = other_style(s.problem.rope.style);
    s.inputs.put(Role::k, turned(other, Role::k, place));
    s.inputs.put(Role::k, turned(s, Role::k,
                                 [place](std::int64_t b, std::int64_t j) { return -place(b, j); }));
}

// Keys that the cache holds rotated, or those of the call's own alone.
void rotate_again(Specification& s, bool own) {
    const Problem& p = s.problem;
    if (!p.cache.present || !p.cache.keys_rotated) return;
    s.inputs.put(Role::k, turned(s, Role::k, [&p, own](std::int64_t b, std::int64_t j) {
                     const bool cached = j < length_of(p.mask.lens_kv, p.len_kv, b) - p.len_q;
                     return own && cached ? 0.0 : static_cast<double>(p.rope.offset + j);
                 }));
}

std::vector<Deviation> whole_rotations() {
    return {
        rope_deviation("rope_ignored", "no rotation by position",
                       [](Specification& s) { s.problem.rope = {}; }),
        rope_deviation(
            "rope_always_interleaved",
            "a rotation of channels (0, 1), (2, 3) and so on, whichever pairs are asked for",
            [](Specification& s) { s.problem.rope.style = RopeStyle::interleaved; }),
        rope_deviation(
            "rope_always_half",
            "a rotation of channels (0, d/2), (1, d/2 + 1) and so on, whichever pairs are "
            "asked for",
            [](Specification& s) { s.problem.rope.style = RopeStyle::half; }),
        rope_deviation(
            "rope_other_style", "a rotation of the other pairs of channels",
            [](Specification& s) { s.problem.rope.style = other_style(s.problem.rope.style); }),
        rope_deviation("rope_keys_other_style",
                       "keys rotated in other pairs of channels than queries", keys_of_other_style),
        rope_deviation(
            "rope_query_at_zero", "queries rotated from position 0, as if nothing were cached",
            [](Specification& s) {
                if (s.problem.len_q != s.problem.len_kv || !s.problem.mask.lens_kv.empty())
                    s.inputs.put(Role::q, turned(s, Role::q, [&](std::int64_t b, std::int64_t i) {
                                     return -cached(s, b, i);
                                 }));
            }),
        rope_deviation(
            "rope_query_without_offset", "queries rotated without the offset that keys have",
            [](Specification& s) {
                const auto offset = static_cast<double>(s.problem.rope.offset);
                if (offset != 0)
                    s.inputs.put(Role::q,
                                 turned(s, Role::q, [offset](auto, auto) { return -offset; }));
            }),
        rope_deviation("rope_query_later", "queries rotated by one position too many",
                       [](Specification& s) {
                           s.inputs.put(Role::q,
                                        turned(s, Role::q, [](auto, auto) { return 1.0; }));
                       }),
        rope_deviation("rope_query_earlier", "queries rotated by one position too few",
                       [](Specification& s) {
                           s.inputs.put(Role::q,
                                        turned(s, Role::q, [](auto, auto) { return -1.0; }));
                       }),
        rope_deviation("rope_keys_alone", "keys rotated and queries not",
                       [](Specification& s) {
                           s.inputs.put(Role::q,
                                        turned(s, Role::q, [&s](std::int64_t b, std::int64_t i) {
                                            return -position_of_query(s, b, i);
                                        }));
                       }),
        rope_deviation("rope_query_backwards", "queries rotated the other way than keys",
                       [](Specification& s) {
                           s.inputs.put(Role::q,
                                        turned(s, Role::q, [&s](std::int64_t b, std::int64_t i) {
                                            return -2 * position_of_query(s, b, i);
                                        }));
                       }),
        rope_deviation("rope_queries_by_axis",
                       "queries rotated by their place on the axis, not in the document",
                       [](Specification& s) {
                           if (s.problem.mask.documents_q.empty()) return;
                           s.inputs.put(Role::q,
                                        turned(s, Role::q, [&s](std::int64_t b, std::int64_t i) {
                                            return static_cast<double>(s.problem.rope.offset + i) -
                                                   position_of_query(s, b, i);
                                        }));
                       }),
        rope_deviation("rope_rotated_keys_again", "keys rotated again that the cache holds rotated",
                       [](Specification& s) { rotate_again(s, false); }),
        rope_deviation("rope_own_keys_again",
                       "the call's own keys rotated again, which are rotated",
                       [](Specification& s) { rotate_again(s, true); }),
        // base^(-2c / D) is (base^(dims / D))^(-2c / dims).
        rope_deviation("rope_exponent_of_all", "a rotation by position base^(-2c / D)",
                       [](Specification& s) {
                           Rope& rope = s.problem.rope;
                           if (rope.dims == 0 || rope.dims == s.problem.dim_qk) return;
                           rope.base =
                               std::pow(rope.base, static_cast<double>(rope.dims) /
                                                       static_cast<double>(s.problem.dim_qk));
                       }),
        // base^(-c / dims) is sqrt(base)^(-2c / dims).
        rope_deviation(
            "rope_exponent_halved", "a rotation by position base^(-c / dims)",
            [](Specification& s) { s.problem.rope.base = std::sqrt(s.problem.rope.base); }),
        rope_deviation(
            "rope_backwards", "queries and keys both rotated the other way",
            [](Specification& s) {
                const Problem asked = s.problem;
                s.inputs.put(Role::q, turned(s, Role::q, [&s](std::int64_t b, std::int64_t i) {
                                 return -2 * position_of_query(s, b, i);
                             }));
                if (asked.cache.keys_rotated) return;
                s.inputs.put(Role::k, turned(s, Role::k, [&asked](std::int64_t, std::int64_t j) {
                                 return -2 * static_cast<double>(asked.rope.offset + j);
                             }));
            }),
        // Of an odd number all but the last.
        rope_deviation("rope_all_channels", "every channel rotated instead of the first few",
                       [](Specification& s) {
                           Rope& rope = s.problem.rope;
                           if (rope.dims != 0) rope.dims = s.problem.dim_qk / 2 * 2;
                       }),
        rope_deviation("rope_half_of_all",
                       "a rotation of channels (0, D/2), (1, D/2 + 1) and so on, "
                       "though fewer are rotated",
                       pairs_half_of_all_apart),
        rope_deviation("rope_two_channels_more", "two channels too many rotated",
                       [](Specification& s) {
                           Rope& rope = s.problem.rope;
                           if (rope.dims != 0 && rope.dims + 2 <= s.problem.dim_qk) rope.dims += 2;
                       }),
        rope_deviation("rope_default_base", "a rotation of base 10000 instead of the one given",
                       [](Specification& s) { s.problem.rope.base = Rope{}.base; }),
    };
}

}  // namespace

std::vector<std::int64_t> channels_half_of_all_apart(const Problem& p) {
    const std::int64_t all = p.dim_qk, apart = all / 2, pairs = p.rope.dims / 2;
    std::vector<std::int64_t> from;
    if (p.rope.style != RopeStyle::half || p.rope.dims == 0 || apart == pairs) return from;
    for (std::int64_t c = 0; c < pairs; ++c) from.push_back(c);
    for (std::int64_t c = 0; c < pairs; ++c) from.push_back(apart + c);
    for (std::int64_t c = 0; c < all; ++c)
        if (c >= pairs && (c < apart || c >= apart + pairs)) from.push_back(c);
    return from;
}

// Scores are sums over channels in any order.
void pairs_half_of_all_apart(Specification& s) {
    const std::vector<std::int64_t> from = channels_half_of_all_apart(s.problem);
    if (from.empty()) return;
    for (const Role role : {Role::q, Role::k}) {
        const Tensor before = s.inputs[role];
        s.inputs.put(role,
                     remake(before.type(), before.shape(),
                            [&](std::int64_t a, std::int64_t h, std::int64_t i, std::int64_t c) {
                                return before.at(a, h, i, from[static_cast<std::size_t>(c)]);
                            }));
    }
}

std::vector<Deviation> rotation_deviations() {
    std::vector<Deviation> list = whole_rotations();
    for (Deviation& d : placed_queries()) list.push_back(std::move(d));
    for (Deviation& d : key_turns()) list.push_back(std::move(d));
    for (const Precision format : {Precision::bf16, Precision::f16})
        list.push_back(angles_rounded(format));
    return list;
}

}  // namespace attest::diagnosis
