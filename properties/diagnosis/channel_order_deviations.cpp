// Channels taken wrongly: the last ones rotated instead of the first, every other pair the other
// way, one counted twice, rows of values as long as those of keys, a scale shared by both factors.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rotation.hpp"

namespace attest::diagnosis {

namespace {

Tensor remade(
    const Tensor& t,
    const std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& element) {
    return remake(t.type(), t.shape(), element);
}

// A product of queries and keys does not depend on the order of their channels: the last ones stand
// where the first do.
std::optional<Specification> last_channels_rotated(const Specification& s) {
    const std::int64_t dim = s.problem.dim_qk, kept = dim - s.problem.rope.dims;
    if (!has_rope(s) || s.problem.cache.keys_rotated || s.problem.rope.dims == 0 || kept <= 0)
        return std::nullopt;
    Specification out = s;
    for (const Role role : {Role::q, Role::k}) {
        const Tensor& t = s.inputs[role];
        out.inputs.put(
            role, remade(t, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
                return t.at(b, h, i, (c + kept) % dim);
            }));
    }
    return out;
}

// Turned the other way is turned back twice as far before it is turned.
std::optional<Specification> odd_pairs_backwards(const Specification& s) {
    if (!has_rope(s) || s.problem.cache.keys_rotated) return std::nullopt;
    bool differs = false;
    Specification out = s;
    turn_by_positions(out, [&](std::int64_t pair, double position, double frequency) {
        if (pair % 2 == 0) return 0.0;
        differs = differs || position != 0;
        return -2 * position * frequency;
    });
    return differs ? std::optional(std::move(out)) : std::nullopt;
}

/// Queries and keys as they meet: turned, of a problem without a rotation.
Specification turned_before(const Specification& s) {
    if (!has_rope(s)) return s;
    Specification out = s;
    for (const Role role : {Role::q, Role::k}) {
        if (role == Role::k && s.problem.cache.keys_rotated) continue;
        out.inputs.put(role, turned(s, role, [&](std::int64_t b, std::int64_t i) {
                           return position_of(s, role, b, i);
                       }));
    }
    out.problem.rope = {};
    out.problem.cache.keys_rotated = false;
    return out;
}

/// Where the rotated pairs of queries are stored in the order of the other style, and so are those
/// of keys, a product does not show it, but beside keys that lie rotated in the cache.
Deviation queries_in_other_order(RopeStyle style) {
    const bool halves = style == RopeStyle::interleaved;
    return {.id = std::string("rope_queries_in_") + (halves ? "halves" : "pairs"),
            .says = std::string("turned queries in the order of ") +
                    (halves ? "halves" : "interleaved pairs") +
                    ", beside keys that lie rotated in the cache in that of " +
                    (halves ? "interleaved pairs" : "halves"),
            .respecify = [style](const Specification& s) -> std::optional<Specification> {
                const Rope& rope = s.problem.rope;
                const std::int64_t dims = rope.dims == 0 ? s.problem.dim_qk : rope.dims;
                if (rope.style != style || !s.problem.cache.keys_rotated || dims < 4)
                    return std::nullopt;
                const Rope other{.style = style == RopeStyle::half ? RopeStyle::interleaved
                                                                   : RopeStyle::half};
                Specification out = turned_before(s);
                const Tensor q = out.inputs[Role::q];
                Tensor& stored = out.inputs[Role::q];
                const auto move = [&](std::int64_t b, std::int64_t h, std::int64_t i) {
                    for (std::int64_t pair = 0; pair < dims / 2; ++pair) {
                        const auto [x, y] = pair_of(rope, dims, pair);
                        const auto [to_x, to_y] = pair_of(other, dims, pair);
                        stored.put(b, h, i, to_x, q.at(b, h, i, x));
                        stored.put(b, h, i, to_y, q.at(b, h, i, y));
                    }
                };
                const Shape shape = q.shape();
                for (std::int64_t b = 0; b < shape[0]; ++b)
                    for (std::int64_t h = 0; h < shape[1]; ++h)
                        for (std::int64_t i = 0; i < shape[2]; ++i) move(b, h, i);
                return out;
            }};
}

// Turned back to where it was: not turned.
std::optional<Specification> last_of_odd_pairs_left(const Specification& s) {
    if (!has_rope(s) || s.problem.cache.keys_rotated) return std::nullopt;
    const std::int64_t dims = s.problem.rope.dims == 0 ? s.problem.dim_qk : s.problem.rope.dims;
    if (dims / 2 % 2 == 0) return std::nullopt;
    bool differs = false;
    Specification out = s;
    turn_by_positions(out, [&](std::int64_t pair, double position, double frequency) {
        if (pair + 1 != dims / 2) return 0.0;
        differs = differs || position != 0;
        return -position * frequency;
    });
    return differs ? std::optional(std::move(out)) : std::nullopt;
}

/// The tensor in f64 with twice the numbers of the channels from one on to another.
Specification counted_twice(const Specification& s, Role role, std::int64_t from, std::int64_t to) {
    Specification out = s;
    const Tensor& t = s.inputs[role];
    out.inputs.put(role,
                   remake(ElementType::f64, t.shape(),
                          [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
                              return (c >= from && c < to ? 2 : 1) * t.at(b, h, i, c);
                          }));
    return out;
}

std::optional<Specification> last_of_odd_twice(const Specification& s) {
    const std::int64_t dim = s.problem.dim_qk;
    if (dim % 2 == 0 || dim == 1) return std::nullopt;
    return counted_twice(s, Role::q, dim - 1, dim);
}

// The last vector of channels is moved back to fit, over channels that were counted.
Deviation last_vector_overlaps(Role role, std::int64_t lanes) {
    const bool scores = role == Role::q;
    return {
        .id = fmt::format("{}_of_last_{}_twice", scores ? "channels" : "outputs", lanes),
        .says = fmt::format("{} whose last {} channels are a vector that ends with them: what it "
                            "shares with the one before counts twice",
                            scores ? "scores" : "an output", lanes),
        .respecify = [role, lanes, scores](const Specification& s) -> std::optional<Specification> {
            const std::int64_t dim = scores ? s.problem.dim_qk : value_dim(s.problem);
            if (dim <= lanes || dim % lanes == 0) return std::nullopt;
            return counted_twice(scores ? turned_before(s) : s, role, dim - lanes,
                                 dim / lanes * lanes);
        }};
}

std::optional<Specification> values_in_rows_of_keys(const Specification& s) {
    const Problem& p = s.problem;
    const std::int64_t dim = p.dim_qk, own = value_dim(p);
    if (own == dim || !p.mask.documents_kv.empty()) return std::nullopt;
    Specification out = s;
    const Tensor& v = s.inputs[Role::v];
    out.inputs.put(Role::v,
                   remade(v, [&](std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t c) {
                       const std::int64_t keys = length_of(p.mask.lens_kv, p.len_kv, b);
                       if (j >= keys) return v.at(b, h, j, c);
                       const std::int64_t at = std::min(j * dim + c, keys * own - 1);
                       return v.at(b, h, at / own, at % own);
                   }));
    return out;
}

// A factor each of the root of the scale, rounded to the format of the tensor.
std::optional<Specification> roots_of_the_scale(const Specification& s) {
    const double scale = effective_scale(s.problem), root = std::sqrt(std::abs(scale));
    if (std::abs(scale) == 1 || scale == 0) return std::nullopt;
    const Specification met = turned_before(s);
    Specification out = with_scale(met, scale < 0 ? -1.0 : 1.0);
    for (const Role role : {Role::q, Role::k}) {
        const Tensor& t = met.inputs[role];
        const Precision format = role == Role::q ? s.problem.format_q : s.problem.format_kv;
        if (format != Precision::f16 && format != Precision::bf16) return std::nullopt;
        out.inputs.put(
            role, remade(t, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
                return round_to(t.at(b, h, i, c) * root, format);
            }));
    }
    return out;
}

// Scores of chunks of channels, of which the last, incomplete one takes the place of the sum.
Deviation last_chunk_alone(std::int64_t chunk) {
    return {.id = "scores_of_last_chunk_" + std::to_string(chunk),
            .says = "scores of the channels behind the last whole " + std::to_string(chunk) +
                    " alone, where there are both",
            .respecify = [chunk](const Specification& s) -> std::optional<Specification> {
                const std::int64_t dim = s.problem.dim_qk, from = dim / chunk * chunk;
                if (from == 0 || from == dim) return std::nullopt;
                return with_channels(s, dim, from);
            }};
}

}  // namespace

std::vector<Deviation> channel_orders() {
    std::vector<Deviation> list{
        {.id = "rope_last_channels",
         .says = "the last channels rotated instead of the first",
         .respecify = last_channels_rotated},
        {.id = "rope_odd_pairs_backwards",
         .says = "every other pair of channels rotated the other way",
         .respecify = odd_pairs_backwards},
        {.id = "rope_last_of_odd_pairs_left",
         .says = "a rotation that leaves out the last of an odd number of pairs",
         .respecify = last_of_odd_pairs_left},
        {.id = "last_of_odd_channels_twice",
         .says = "the last channel of an odd dimension counted twice in the scores",
         .respecify = last_of_odd_twice},
        {.id = "values_in_rows_of_keys",
         .says = "values read as if their rows were as long as those of keys",
         .respecify = values_in_rows_of_keys},
        {.id = "roots_of_the_scale",
         .says = "queries and keys each times the root of the scale, rounded to their format",
         .respecify = roots_of_the_scale},
        queries_in_other_order(RopeStyle::interleaved),
        queries_in_other_order(RopeStyle::half)};
    for (const std::int64_t chunk : {128, 64, 32, 16, 8}) list.push_back(last_chunk_alone(chunk));
    for (const Role role : {Role::q, Role::v})
        for (const std::int64_t lanes : {4, 8, 16, 32})
            list.push_back(last_vector_overlaps(role, lanes));
    return list;
}

}  // namespace attest::diagnosis
