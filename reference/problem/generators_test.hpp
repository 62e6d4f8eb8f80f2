#pragma once
// RapidCheck generators of valid problems and cases, for the tests of this folder and of others.
// Sizes are small, features dense: every optional field has an even chance to be there. Include
// gtest before.

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

#include "reference/problem/case.hpp"
#include "reference/problem/validity.hpp"

namespace attest {

inline void showValue(const Problem& problem, std::ostream& out) {
    out << print(problem);
}
inline void showValue(const Case& c, std::ostream& out) {
    out << print(c) << "  " << to_json(c);
}
inline void PrintTo(const Case& c, std::ostream* out) {
    showValue(c, *out);
}
inline void PrintTo(const Problem& problem, std::ostream* out) {
    showValue(problem, *out);
}

namespace generate {

inline std::int64_t whole(std::int64_t low, std::int64_t high) {
    return *rc::gen::inRange(low, high + 1);
}
inline bool coin() {
    return *rc::gen::arbitrary<bool>();
}
template <typename Enum>
Enum one_of(int count) {
    return static_cast<Enum>(whole(0, count - 1));
}

/// Finite doubles of every magnitude: a random significand at a random binade, or a plain number.
inline double real() {
    if (coin()) return static_cast<double>(whole(-8, 8)) / 4;
    const auto bits = *rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
    const double unit = static_cast<double>(bits >> 11) * 0x1p-53 + (coin() ? 1.0 : 0.0);
    return std::ldexp(coin() ? -unit : unit, static_cast<int>(whole(-1080, 1000)));
}

inline std::uint64_t seed() {
    return *rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
}

inline std::vector<std::int64_t> lengths(std::int64_t count, std::int64_t most) {
    std::vector<std::int64_t> lens;
    for (std::int64_t i = 0; i < count; ++i) lens.push_back(whole(0, most));
    return lens;
}

/// `count` lengths that sum to `total`.
inline std::vector<std::int64_t> parts(std::int64_t count, std::int64_t total) {
    std::vector<std::int64_t> edges = lengths(count - 1, total);
    edges.push_back(0);
    edges.push_back(total);
    std::sort(edges.begin(), edges.end());
    std::vector<std::int64_t> lens;
    for (std::size_t i = 1; i < edges.size(); ++i) lens.push_back(edges[i] - edges[i - 1]);
    return lens;
}

inline Layout layout() {
    if (coin()) return {};
    return {one_of<AxisOrder>(4), whole(0, 9), whole(0, 9)};
}

inline void draw_mask(Problem& p) {
    Mask& m = p.mask;
    m.causal = coin();
    if (coin()) m.window = {whole(-1, 9), whole(-1, 9)};
    m.tensor = {one_of<MaskKind>(3), coin(), coin(), coin()};
    if (coin()) m.tensor.pattern = one_of<MaskPattern>(mask_pattern_count);
    if (coin()) m.tensor.tile = whole(1, 20);
    if (coin()) m.tensor.floor = -std::fabs(real());
    if (coin() && !p.cache.present) {
        const bool alike = p.len_q == p.len_kv;
        p.batch = 1;
        const std::int64_t count = whole(1, 4);
        m.documents_q = parts(count, p.len_q);
        m.documents_kv = alike ? m.documents_q : parts(count, p.len_kv);
        return;
    }
    if (coin()) m.lens_q = lengths(p.batch, p.len_q);
    if (coin()) {
        for (std::int64_t b = 0; b < p.batch; ++b) {
            const auto at = static_cast<std::size_t>(b);
            const std::int64_t new_keys = m.lens_q.empty() ? p.len_q : m.lens_q[at];
            m.lens_kv.push_back(whole(p.cache.present ? new_keys : 0, p.len_kv));
        }
    }
}

/// RoPE and ALiBi where positions are defined, else neither.
inline void draw_positions(Problem& p) {
    const bool sequences = !p.mask.lens_q.empty() || !p.mask.lens_kv.empty();
    const bool defined = p.cache.present || (p.len_q == p.len_kv && !sequences &&
                                             p.mask.documents_q == p.mask.documents_kv);
    if (!defined) return;
    p.alibi = coin();
    p.alibi_slopes = one_of<AlibiSlopes>(3);
    if (p.dim_qk < 2 || !coin()) return;
    p.rope.style = coin() ? RopeStyle::interleaved : RopeStyle::half;
    if (coin()) p.rope.base = std::fabs(real()) + 1;
    p.rope.dims = 2 * whole(p.dim_qk % 2, p.dim_qk / 2);
    p.rope.offset = whole(0, 50);
    p.cache.keys_rotated = p.cache.present && coin();
}

inline Problem any_problem() {
    Problem p;
    p.batch = whole(0, 3);
    p.heads_kv = whole(1, 3);
    p.heads_q = p.heads_kv * whole(1, 3);
    p.len_q = whole(0, 9);
    p.len_kv = coin() ? p.len_q : whole(0, 12);
    p.dim_qk = whole(1, 9);
    p.dim_v = whole(0, 9);
    if (coin()) {
        p.cache = {true, whole(0, 9), coin() ? whole(1, 5) : 0, false, false};
        p.cache.ring = p.cache.page_size == 0 && coin();
        p.len_kv = p.cache.len + p.len_q;
    }
    draw_mask(p);
    draw_positions(p);
    if (coin()) p.scale = real();
    if (coin()) p.softcap = std::fabs(real());
    p.sink = coin();
    if (coin()) p.dropout = {static_cast<double>(whole(0, 99)) / 100, seed()};
    p.splits = whole(0, 4);
    p.format_q = one_of<Precision>(4);
    p.format_kv = coin() ? p.format_q : one_of<Precision>(4);
    p.format_o = coin() ? p.format_q : one_of<Precision>(4);
    p.layout_q = layout();
    p.layout_k = layout();
    p.layout_v = layout();
    p.layout_o = layout();
    p.want_lse = coin();
    p.want_grad = coin();
    p.lse_grad = coin();
    return p;
}

inline TensorValues any_values(const Problem& p, Role role) {
    TensorValues tensor;
    tensor.fill = one_of<Fill>(fill_count);
    if (tensor.fill != Fill::explicit_values) return tensor;
    const Shape shape = *shape_of(p, role);
    const Precision format = precision_of(type_of(p, role));
    const auto count = shape[0] * shape[1] * shape[2] * shape[3];
    for (std::int64_t i = 0; i < count; ++i) tensor.values.push_back(round_to(real(), format));
    return tensor;
}

}  // namespace generate

/// A valid problem, canonical or not. At full size from the first one on: RapidCheck would start
/// with ranges of almost nothing.
inline rc::Gen<Problem> any_problem() {
    return rc::gen::resize(100, rc::gen::exec(generate::any_problem));
}

inline rc::Gen<Problem> canonical_problem() {
    return rc::gen::map(any_problem(), canonical);
}

/// A case in canonical form.
inline rc::Gen<Case> any_case() {
    const auto draw = [] {
        Case c;
        c.problem = canonical(generate::any_problem());
        c.values.kind = generate::one_of<ValueKind>(value_kind_count);
        c.values.seed = generate::coin() ? generate::seed() : 0;
        for (const Role role : written_roles) {
            if (generate::coin() || !shape_of(c.problem, role)) continue;
            TensorValues tensor = generate::any_values(c.problem, role);
            if (tensor.fill != Fill::drawn) c.values.tensors[role] = std::move(tensor);
        }
        return c;
    };
    return rc::gen::resize(100, rc::gen::exec(draw));
}

}  // namespace attest
