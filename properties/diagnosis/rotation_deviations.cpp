// Positions taken wrongly, where a rotation tells them: in the wrong pairs, from the wrong origin,
// by other angles.

#include <cmath>
#include <utility>

#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

// Channel pair c of a rotation, as axis indices.
std::pair<std::int64_t, std::int64_t> pair_of(const Rope& rope, std::int64_t dims, std::int64_t c) {
    if (rope.style == RopeStyle::interleaved) return {2 * c, 2 * c + 1};
    return {c, c + dims / 2};
}

// A tensor's rows turned further by so much, before the reference's own rotation: an angle that may
// differ from pair to pair, or as by so many positions.
using Angles =
    std::function<double(std::int64_t b, std::int64_t i, std::int64_t pair, double frequency)>;
using Positions = std::function<double(std::int64_t b, std::int64_t i)>;

Tensor turned_by(const Specification& s, Role role, const Angles& by) {
    const Problem& problem = s.problem;
    const Tensor& from = s.inputs[role];
    Tensor out(ElementType::f64, from.shape());
    for (std::int64_t n = 0; n < from.size(); ++n) out.set(n, from.get(n));
    const std::int64_t dims = problem.rope.dims != 0 ? problem.rope.dims : problem.dim_qk;
    const Shape& shape = from.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b)
        for (std::int64_t h = 0; h < shape[1]; ++h)
            for (std::int64_t i = 0; i < shape[2]; ++i)
                for (std::int64_t c = 0; c < dims / 2; ++c) {
                    const double angle =
                        by(b, i, c,
                           std::pow(problem.rope.base,
                                    -2.0 * static_cast<double>(c) / static_cast<double>(dims)));
                    const auto [x, y] = pair_of(problem.rope, dims, c);
                    const double a = from.at(b, h, i, x), z = from.at(b, h, i, y);
                    out.put(b, h, i, x, a * std::cos(angle) - z * std::sin(angle));
                    out.put(b, h, i, y, a * std::sin(angle) + z * std::cos(angle));
                }
    return out;
}

Tensor turned(const Specification& s, Role role, const Positions& by) {
    return turned_by(s, role,
                     [&by](std::int64_t b, std::int64_t i, std::int64_t, double frequency) {
                         return by(b, i) * frequency;
                     });
}

double cached(const Specification& s, std::int64_t b) {
    return static_cast<double>(length_of(s.problem.mask.lens_kv, s.problem.len_kv, b) -
                               length_of(s.problem.mask.lens_q, s.problem.len_q, b));
}

double position_of_query(const Specification& s, std::int64_t b, std::int64_t i) {
    return static_cast<double>(s.problem.rope.offset + i) + cached(s, b);
}

bool has_rope(const Specification& s) {
    return s.problem.rope.style != RopeStyle::none;
}

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
    return rope_deviation(
        "rope_angles_" + std::string(name(format)), "angles of rotation rounded to " + words,
        [format](Specification& s) {
            const auto off = [format](double position, double frequency) {
                const double angle = position * frequency;
                return round_to(angle, format) - angle;
            };
            s.inputs.put(Role::q, turned_by(s, Role::q,
                                            [&](std::int64_t b, std::int64_t i, std::int64_t,
                                                double frequency) {
                                                return off(position_of_query(s, b, i), frequency);
                                            }));
            if (s.problem.cache.keys_rotated) return;
            s.inputs.put(
                Role::k,
                turned_by(s, Role::k,
                          [&](std::int64_t, std::int64_t j, std::int64_t, double frequency) {
                              return off(static_cast<double>(s.problem.rope.offset + j), frequency);
                          }));
        });
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
        rope_deviation("rope_other_style", "a rotation of the other pairs of channels",
                       [](Specification& s) {
                           s.problem.rope.style = s.problem.rope.style == RopeStyle::half
                                                      ? RopeStyle::interleaved
                                                      : RopeStyle::half;
                       }),
        rope_deviation(
            "rope_query_at_zero", "queries rotated from position 0, as if nothing were cached",
            [](Specification& s) {
                if (s.problem.len_q != s.problem.len_kv || !s.problem.mask.lens_kv.empty())
                    s.inputs.put(Role::q, turned(s, Role::q, [&](std::int64_t b, std::int64_t) {
                                     return -cached(s, b);
                                 }));
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
        rope_deviation("rope_all_channels", "every channel rotated instead of the first few",
                       [](Specification& s) { s.problem.rope.dims = 0; }),
        rope_deviation("rope_two_channels_more", "two channels too many rotated",
                       [](Specification& s) {
                           Rope& rope = s.problem.rope;
                           if (rope.dims != 0 && rope.dims + 2 <= s.problem.dim_qk) rope.dims += 2;
                       }),
        rope_deviation("rope_default_base", "a rotation of base 10000 instead of the one given",
                       [](Specification& s) { s.problem.rope.base = Rope{}.base; }),
    };
}

// Where a query stands is one number in such a kernel: masks, biases and rotation all go by it.
Deviation queries_placed_by_axes() {
    return {.id = "queries_longest",
            .says =
                "queries placed by the lengths of the axes, not each sequence's own, in masks, "
                "ALiBi and rotation",
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (p.mask.lens_q.empty() && p.mask.lens_kv.empty()) return std::nullopt;
                const std::int64_t offset = p.len_kv - p.len_q;
                Rules rules = rules_of(s);
                rules.causal_offset = rules.window_offset = offset;
                Specification out = with_rules(s, rules);
                if (has_rope(s))
                    out.inputs.put(Role::q, turned(s, Role::q, [&](std::int64_t b, std::int64_t) {
                                       return static_cast<double>(offset) - cached(s, b);
                                   }));
                if (!p.alibi) return out;
                return with_bias(out, [&](const MaskPlace& at) {
                    const std::int64_t own = at.row + at.len_kv - at.len_q - at.column;
                    const auto further = std::abs(at.row + offset - at.column) - std::abs(own);
                    return -s.inputs[Role::alibi_slopes].get(at.head) *
                           static_cast<double>(further);
                });
            }};
}

}  // namespace

std::vector<Deviation> rotation_deviations() {
    std::vector<Deviation> list = whole_rotations();
    list.push_back(queries_placed_by_axes());
    for (Deviation& d : key_turns()) list.push_back(std::move(d));
    for (const Precision format : {Precision::bf16, Precision::f16})
        list.push_back(angles_rounded(format));
    return list;
}

}  // namespace attest::diagnosis
