// Random problems for the kernels' tests: every feature, small and ragged shapes.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/test_call.hpp"

namespace attest::cpu {
namespace {

using Engine = std::mt19937_64;

std::int64_t below(Engine& random, std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}

bool chance(Engine& random, int percent) {
    return below(random, 100) < percent;
}

std::vector<double> normals(Engine& random, std::int64_t count, std::int32_t format, double size) {
    std::normal_distribution<double> normal(0.0, size);
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& value : values) value = rounded_to(normal(random), format);
    return values;
}

std::vector<std::int32_t> lengths(Engine& random, std::int64_t count, std::int64_t limit) {
    std::vector<std::int32_t> values;
    for (std::int64_t n = 0; n < count; ++n) {
        values.push_back(static_cast<std::int32_t>(below(random, limit + 1)));
    }
    return values;
}

void draw_mask(Engine& random, TestCase& t) {
    const attest_problem& p = t.problem;
    const std::int64_t full[4] = {p.batch, p.heads_q, p.len_q, p.len_kv};
    std::int64_t count = 1;
    for (int axis = 0; axis < 4; ++axis) {
        t.mask_shape[axis] = chance(random, axis < 3 ? 40 : 10) ? 1 : full[axis];
        count *= t.mask_shape[axis];
    }
    for (std::int64_t n = 0; n < count; ++n) {
        const bool visible = chance(random, 70);
        const double bias = rounded_to(std::normal_distribution<double>()(random), p.format_q);
        const double hidden = -std::numeric_limits<double>::infinity();
        t.mask.push_back(p.mask_kind == ATTEST_MASK_BOOL ? (visible ? 1.0 : 0.0)
                                                         : (visible ? bias : hidden));
    }
}

std::vector<std::int32_t> cut(Engine& random, std::int64_t length, std::size_t parts) {
    std::vector<std::int32_t> at{0};
    for (std::size_t n = 1; n < parts; ++n) {
        at.push_back(static_cast<std::int32_t>(below(random, length + 1)));
    }
    at.push_back(static_cast<std::int32_t>(length));
    std::sort(at.begin(), at.end());
    return at;
}

void draw_lay(Engine& random, Lay& lay) {
    if (chance(random, 50)) return;
    static constexpr int orders[4][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {2, 0, 1, 3}, {0, 1, 3, 2}};
    std::copy_n(orders[below(random, 4)], 4, lay.order);
    lay.pad = below(random, 4);
}

/// What decides visibility and positions. RoPE and ALiBi need a cache or equal full lengths.
void draw_features(Engine& random, TestCase& t) {
    attest_problem& p = t.problem;
    p.causal = chance(random, 40) ? 1 : 0;
    if (chance(random, 25)) p.window_left = below(random, 20);
    if (chance(random, 25)) p.window_right = below(random, 20);
    p.mask_kind = chance(random, 40) ? static_cast<std::int32_t>(1 + below(random, 2)) : 0;
    if (chance(random, 25)) p.softcap = 1.0 + static_cast<double>(below(random, 8));
    p.sink = chance(random, 25) ? 1 : 0;
    const int kind = static_cast<int>(below(random, 4));
    if (kind == 0 && p.len_kv >= p.len_q) {
        p.cache_len = p.len_kv - p.len_q;
        if (chance(random, 60)) p.page_size = 1 + below(random, 9);
        if (p.page_size == 0 && chance(random, 50)) p.flags |= ATTEST_FLAG_RING;
    } else if (kind == 1) {
        p.flags |= ATTEST_FLAG_PACKED;
        p.batch = 1;
    } else if (kind == 2) {
        p.len_kv = p.len_q;
    }
    const bool placed = (kind == 0 && p.len_kv >= p.len_q) || kind == 2;
    if (placed && chance(random, 40)) {
        p.rope_kind = static_cast<std::int32_t>(1 + below(random, 2));
        p.rope_dims = 2 * (1 + below(random, std::max<std::int64_t>(p.dim_qk / 2, 1)));
        p.rope_offset = below(random, 100);
        if (p.dim_qk < 2) p.rope_kind = ATTEST_ROPE_NONE;
        if (kind == 0 && chance(random, 30)) p.flags |= ATTEST_FLAG_KEYS_ROTATED;
    }
    p.alibi = placed && chance(random, 30) ? 1 : 0;
    if (kind == 0 || kind == 3) {
        if (chance(random, 50)) t.lens_kv = lengths(random, p.batch, p.len_kv);
        if (chance(random, 30)) t.lens_q = lengths(random, p.batch, p.len_q);
    }
    if (kind == 1) {
        const auto documents = static_cast<std::size_t>(1 + below(random, 4));
        t.cu_q = cut(random, p.len_q, documents);
        t.cu_kv = cut(random, p.len_kv, documents);
    }
}

void draw_values(Engine& random, TestCase& t, double logits) {
    const attest_problem& p = t.problem;
    const double spread = std::sqrt(std::max(logits, 0.0));
    t.q = normals(random, p.batch * p.heads_q * p.len_q * p.dim_qk, p.format_q, spread);
    t.k = normals(random, p.batch * p.heads_kv * p.len_kv * p.dim_qk, p.format_kv, spread);
    t.v = normals(random, p.batch * p.heads_kv * p.len_kv * p.dim_v, p.format_kv, 1);
    t.slopes = normals(random, p.heads_q, ATTEST_F32, 1);
    t.sinks = normals(random, p.heads_q, ATTEST_F32, 3);
    if (p.mask_kind != ATTEST_MASK_NONE) draw_mask(random, t);
}

}  // namespace

attest_problem problem_of(std::int64_t heads_q, std::int64_t heads_kv, std::int64_t len_q,
                          std::int64_t len_kv, std::int64_t dim, std::int32_t format) {
    attest_problem p{};
    p.struct_size = sizeof p;
    p.batch = 1;
    p.heads_q = heads_q;
    p.heads_kv = heads_kv;
    p.len_q = len_q;
    p.len_kv = len_kv;
    p.dim_qk = p.dim_v = dim;
    p.format_q = p.format_kv = p.format_o = format;
    p.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
    p.window_left = p.window_right = -1;
    p.rope_base = 10000;
    p.want_lse = 1;
    return p;
}

TestCase draw(const attest_problem& problem, unsigned seed, double logits) {
    Engine random(seed);
    TestCase t;
    t.problem = problem;
    draw_values(random, t, logits);
    return t;
}

TestCase draw_any(unsigned seed) {
    Engine random(seed);
    TestCase t;
    const std::int64_t heads_kv = 1 + below(random, 3);
    const std::int64_t long_or_short = chance(random, 30) ? 150 : 20;
    t.problem = problem_of(heads_kv * (1 + below(random, 3)), heads_kv,
                           1 + below(random, long_or_short), 1 + below(random, long_or_short),
                           1 + below(random, 40), static_cast<std::int32_t>(below(random, 4)));
    attest_problem& p = t.problem;
    p.batch = 1 + below(random, 3);
    if (chance(random, 40)) p.dim_v = 1 + below(random, 80);
    if (chance(random, 30)) p.scale = static_cast<double>(below(random, 9) - 4) * 0.3;
    if (chance(random, 15)) p.format_kv = static_cast<std::int32_t>(below(random, 4));
    if (chance(random, 15)) p.format_o = static_cast<std::int32_t>(below(random, 4));
    p.want_lse = chance(random, 80) ? 1 : 0;
    draw_features(random, t);
    if (chance(random, 30)) p.splits = 1 + below(random, 5);
    draw_values(random, t, chance(random, 30) ? 20.0 : 1.0);
    for (Lay* lay : {&t.lay_q, &t.lay_k, &t.lay_v, &t.lay_o}) draw_lay(random, *lay);
    return t;
}

}  // namespace attest::cpu
