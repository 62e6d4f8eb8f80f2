// Positions taken wrongly: ALiBi of the wrong sign, rotation in the wrong pairs or from the wrong
// origin.

#include <cmath>

#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

std::optional<Specification> with_slopes(const Specification& s,
                                         const std::function<double(std::int64_t)>& slope_of) {
    if (!s.problem.alibi) return std::nullopt;
    Specification out = s;
    const Tensor& slopes = s.inputs[Role::alibi_slopes];
    Tensor changed(ElementType::f64, slopes.shape());
    for (std::int64_t h = 0; h < slopes.size(); ++h) changed.set(h, slope_of(h));
    out.inputs.put(Role::alibi_slopes, std::move(changed));
    return out;
}

// Channel pair c of a rotation, as axis indices.
std::pair<std::int64_t, std::int64_t> pair_of(const Rope& rope, std::int64_t dims, std::int64_t c) {
    if (rope.style == RopeStyle::interleaved) return {2 * c, 2 * c + 1};
    return {c, c + dims / 2};
}

// A tensor's rows turned further by so many positions, before the reference's own rotation.
using Positions = std::function<double(std::int64_t b, std::int64_t i)>;

Tensor turned(const Specification& s, Role role, const Positions& by) {
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
                        by(b, i) * std::pow(problem.rope.base, -2.0 * static_cast<double>(c) /
                                                                   static_cast<double>(dims));
                    const auto [x, y] = pair_of(problem.rope, dims, c);
                    const double a = from.at(b, h, i, x), z = from.at(b, h, i, y);
                    out.put(b, h, i, x, a * std::cos(angle) - z * std::sin(angle));
                    out.put(b, h, i, y, a * std::sin(angle) + z * std::cos(angle));
                }
    return out;
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

// Where keys lie in pages, slots have no position of their own; and what is rotated already is not
// rotated twice.
void keys_turned_back(Specification& s) {
    if (s.problem.cache.page_size > 0 || s.problem.cache.keys_rotated) return;
    s.inputs.put(Role::k, turned(s, Role::k, [&s](std::int64_t, std::int64_t j) {
                     return -static_cast<double>(s.problem.rope.offset + j);
                 }));
}

std::vector<Deviation> rope_deviations() {
    return {
        rope_deviation("rope_ignored", "no rotation by position",
                       [](Specification& s) { s.problem.rope = {}; }),
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
        rope_deviation("rope_queries_alone", "queries rotated and keys not", keys_turned_back),
        rope_deviation("rope_query_backwards", "queries rotated the other way than keys",
                       [](Specification& s) {
                           s.inputs.put(Role::q,
                                        turned(s, Role::q, [&s](std::int64_t b, std::int64_t i) {
                                            return -2 * position_of_query(s, b, i);
                                        }));
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

}  // namespace

std::vector<Deviation> position_deviations() {
    std::vector<Deviation> list = rope_deviations();
    const auto slope = [](const Specification& s, std::int64_t h) {
        return s.inputs[Role::alibi_slopes].get(h);
    };
    list.push_back({.id = "alibi_negated",
                    .says = "ALiBi of the wrong sign",
                    .respecify = [slope](const Specification& s) {
                        return with_slopes(s, [&](std::int64_t h) { return -slope(s, h); });
                    }});
    list.push_back(
        {.id = "alibi_ignored", .says = "no ALiBi at all", .respecify = [](const Specification& s) {
             return with_slopes(s, [](std::int64_t) { return 0.0; });
         }});
    list.push_back({.id = "alibi_next_head",
                    .says = "the ALiBi slope of the next head",
                    .respecify = [slope](const Specification& s) {
                        return with_slopes(s, [&](std::int64_t h) {
                            return slope(s, (h + 1) % s.problem.heads_q);
                        });
                    }});
    list.push_back({.id = "alibi_of_key_head",
                    .says = "the ALiBi slope of the key head",
                    .respecify = [slope](const Specification& s) {
                        return with_slopes(
                            s, [&](std::int64_t h) { return slope(s, h / group_size(s.problem)); });
                    }});
    list.push_back({.id = "alibi_own_slopes",
                    .says = "slopes 2^(-8(h + 1)/H) of its own instead of those it is given",
                    .respecify = [](const Specification& s) {
                        return with_slopes(s, [&s](std::int64_t h) {
                            return std::exp2(-8.0 * static_cast<double>(h + 1) /
                                             static_cast<double>(s.problem.heads_q));
                        });
                    }});
    // A bias of its own instead of -slope |column - position of the query|.
    const auto other_distance = [&](std::string id, std::string says,
                                    std::int64_t (*distance)(const MaskPlace&)) {
        list.push_back({.id = std::move(id),
                        .says = std::move(says),
                        .respecify = [slope, distance](
                                         const Specification& s) -> std::optional<Specification> {
                            if (!s.problem.alibi) return std::nullopt;
                            Specification out = with_bias(s, [&](const MaskPlace& p) {
                                return -slope(s, p.head) * static_cast<double>(distance(p));
                            });
                            out.problem.alibi = false;
                            out.inputs.erase(Role::alibi_slopes);
                            return out;
                        }});
    };
    other_distance("alibi_from_key_zero", "ALiBi by the key's position alone",
                   [](const MaskPlace& p) { return -p.column; });
    other_distance("alibi_signed", "ALiBi by the distance with its sign",
                   [](const MaskPlace& p) { return p.row + p.len_kv - p.len_q - p.column; });
    other_distance("alibi_from_one", "ALiBi by the distance and one", [](const MaskPlace& p) {
        return std::abs(p.row + p.len_kv - p.len_q - p.column) + 1;
    });
    other_distance("alibi_top_left", "ALiBi as if nothing were cached",
                   [](const MaskPlace& p) { return std::abs(p.row - p.column); });
    return list;
}

}  // namespace attest::diagnosis
