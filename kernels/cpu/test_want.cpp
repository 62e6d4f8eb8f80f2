// What a test's problem should give, in long double, and how far a correct kernel may be off.

#include <cmath>
#include <limits>

#include "kernels/cpu/test_call.hpp"

namespace attest::cpu {
namespace {

using Wide = long double;

struct Sequence {
    std::int64_t batch = 0, query0 = 0, queries = 0, key0 = 0, keys = 0;
};

std::vector<Sequence> sequences(const TestCase& t) {
    std::vector<Sequence> all;
    if (!t.cu_q.empty()) {
        for (std::size_t n = 0; n + 1 < t.cu_q.size(); ++n) {
            all.push_back(
                {0, t.cu_q[n], t.cu_q[n + 1] - t.cu_q[n], t.cu_kv[n], t.cu_kv[n + 1] - t.cu_kv[n]});
        }
        return all;
    }
    for (std::int64_t b = 0; b < t.problem.batch; ++b) {
        const auto n = static_cast<std::size_t>(b);
        all.push_back({b, 0, t.lens_q.empty() ? t.problem.len_q : t.lens_q[n], 0,
                       t.lens_kv.empty() ? t.problem.len_kv : t.lens_kv[n]});
    }
    return all;
}

std::vector<Wide> turned(const TestCase& t, const double* row, std::int64_t position, bool turn) {
    const attest_problem& p = t.problem;
    std::vector<Wide> out(row, row + p.dim_qk);
    if (p.rope_kind == ATTEST_ROPE_NONE || !turn) return out;
    const std::int64_t dims = p.rope_dims > 0 ? p.rope_dims : p.dim_qk;
    for (std::int64_t c = 0; c < dims / 2; ++c) {
        const Wide angle = static_cast<Wide>(p.rope_offset + position) *
                           std::pow(static_cast<Wide>(p.rope_base), Wide(-2 * c) / Wide(dims));
        const bool half = p.rope_kind == ATTEST_ROPE_HALF;
        const auto x = static_cast<std::size_t>(half ? c : 2 * c);
        const auto y = static_cast<std::size_t>(half ? c + dims / 2 : 2 * c + 1);
        const Wide a = out[x], b = out[y];
        out[x] = a * std::cos(angle) - b * std::sin(angle);
        out[y] = a * std::sin(angle) + b * std::cos(angle);
    }
    return out;
}

bool admitted(const attest_problem& p, std::int64_t distance) {  // j - (i + off)
    if (p.causal != 0 && distance > 0) return false;
    if (p.window_left >= 0 && distance < -p.window_left) return false;
    return p.window_right < 0 || distance <= p.window_right;
}

struct WantedScore {
    Wide value = 0, error = 0;
    std::int64_t key = 0;
};

struct RowOf {
    const TestCase& t;
    const Sequence& s;
    std::int64_t head, i;
    double u, rounding;  // unit roundoffs of the accumulator, and of P (0: none)
};

double mask_value(const RowOf& row, std::int64_t j) {
    const TestCase& t = row.t;
    const std::int64_t index[4] = {row.s.batch, row.head, row.s.query0 + row.i, row.s.key0 + j};
    std::int64_t flat = 0;
    for (int axis = 0; axis < 4; ++axis) {
        flat = flat * t.mask_shape[axis] + (t.mask_shape[axis] == 1 ? 0 : index[axis]);
    }
    return t.mask[static_cast<std::size_t>(flat)];
}

/// Every visible score with its error: d + 8 roundings of the dot product, the scale and the two
/// rotated operands, on a_j = |scale| sum |q_c k_jc|; 6 roundings of what is added; 8 of the cap
/// (tanh moves by no more than its argument).
std::vector<WantedScore> scores_of(const RowOf& row) {
    const TestCase& t = row.t;
    const attest_problem& p = t.problem;
    const std::int64_t offset = row.s.keys - row.s.queries;
    const std::int64_t kv_head = row.head / (p.heads_q / p.heads_kv);
    const double* q =
        t.q.data() +
        ((row.s.batch * p.heads_q + row.head) * p.len_q + row.s.query0 + row.i) * p.dim_qk;
    const std::vector<Wide> query = turned(t, q, row.i + offset, true);
    std::vector<WantedScore> scores;
    for (std::int64_t j = 0; j < row.s.keys; ++j) {
        if (!admitted(p, j - row.i - offset)) continue;
        Wide bias = 0;
        if (p.mask_kind != ATTEST_MASK_NONE) {
            const double m = mask_value(row, j);
            const bool additive = p.mask_kind == ATTEST_MASK_ADDITIVE;
            if (additive ? m == -std::numeric_limits<double>::infinity() : m == 0) continue;
            if (additive) bias = m;
        }
        Wide added = std::abs(bias);
        if (p.alibi != 0) {
            const Wide term = Wide(t.slopes[static_cast<std::size_t>(row.head)]) *
                              static_cast<Wide>(std::abs(row.i + offset - j));
            bias -= term;
            added += std::abs(term);
        }
        const double* k =
            t.k.data() +
            ((row.s.batch * p.heads_kv + kv_head) * p.len_kv + row.s.key0 + j) * p.dim_qk;
        const bool turn = (p.flags & ATTEST_FLAG_KEYS_ROTATED) == 0;
        const std::vector<Wide> key = turned(t, k, j, turn);
        Wide dot = 0, magnitude = 0;
        for (std::size_t c = 0; c < key.size(); ++c) {
            dot += query[c] * key[c];
            magnitude += std::abs(query[c] * key[c]);
        }
        const Wide cap = p.softcap;
        Wide score = static_cast<Wide>(p.scale) * dot;
        if (cap != 0) score = cap * std::tanh(score / cap);
        const Wide a = static_cast<Wide>(std::abs(p.scale)) * magnitude;
        scores.push_back(
            {score + bias, row.u * (Wide(p.dim_qk + 8) * a + 6 * added + 8 * std::abs(cap)), j});
    }
    return scores;
}

/// With W_j = p_j (1 + eta_j), |eta_j| <= H_j the computed weights: the numerator's terms are off
/// by (1 + H)(1 + r)(1 + g) - 1 each, the denominator by the same without r; g covers the roundings
/// of the sums and the rescalings, n + 8 of each. What underflows is below the smallest normal
/// number a key.
Want output_of(const RowOf& row, const std::vector<WantedScore>& scores,
               const std::vector<Wide>& weight, const std::vector<Wide>& off, std::int64_t c,
               Wide sums, Wide h) {
    const attest_problem& p = row.t.problem;
    const std::int64_t kv_head = row.head / (p.heads_q / p.heads_kv);
    const bool wide = row.u < 1e-12;
    const Wide floor =
        wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
    const Wide weight_floor = p.format_q == ATTEST_F16 && row.rounding > 0 ? Wide(0x1p-25) : floor;
    Wide exact = 0, lost = 0;
    for (std::size_t n = 0; n < scores.size(); ++n) {
        const auto flat =
            ((row.s.batch * p.heads_kv + kv_head) * p.len_kv + row.s.key0 + scores[n].key) *
                p.dim_v +
            c;
        const Wide v = row.t.v[static_cast<std::size_t>(flat)];
        exact += weight[n] * v;
        const Wide relative = (1 + off[n]) * (1 + Wide(row.rounding)) * (1 + sums) - 1;
        lost += (weight[n] * relative + 2 * weight_floor) * std::abs(v);
    }
    const Wide below = (1 + h) * (1 + sums) - 1;
    const Wide error = (lost + below * std::abs(exact)) / (1 - below);
    const double format_u = p.format_o == ATTEST_F64   ? 0x1p-53
                            : p.format_o == ATTEST_F32 ? 0x1p-24
                            : p.format_o == ATTEST_F16 ? 0x1p-11
                                                       : 0x1p-8;
    const Wide step = p.format_o == ATTEST_F16 ? Wide(0x1p-25) : floor;
    return {static_cast<double>(exact),
            static_cast<double>(
                error + (Wide(format_u) + 3 * Wide(row.u)) * (std::abs(exact) + error) + step)};
}

void row_of(const RowOf& row, Wanted& wanted) {
    const attest_problem& p = row.t.problem;
    const auto flat = static_cast<std::size_t>((row.s.batch * p.heads_q + row.head) * p.len_q +
                                               row.s.query0 + row.i);
    std::vector<WantedScore> scores = scores_of(row);
    const std::size_t keys = scores.size();
    if (p.sink != 0) scores.push_back({row.t.sinks[static_cast<std::size_t>(row.head)], 0, -1});
    wanted.lse[flat] = {-std::numeric_limits<double>::infinity(), 0};
    if (scores.empty()) return;
    Wide max = scores[0].value, error_max = 0, sum = 0;
    for (const WantedScore& s : scores) max = std::max(max, s.value);
    for (const WantedScore& s : scores) error_max = std::max(error_max, s.error);
    for (const WantedScore& s : scores) sum += std::exp(s.value - max);
    const Wide lse = max + std::log(sum);
    const auto n = static_cast<Wide>(scores.size());
    const Wide sums = std::expm1((2 * n + 16) * Wide(row.u));
    Wide h = 0;
    std::vector<Wide> weight, off;
    for (const WantedScore& s : scores) {
        const Wide exponent = s.error + 3 * Wide(row.u) * (max - s.value + 2 * error_max) +
                              Wide(row.u) * std::abs(max);
        weight.push_back(std::exp(s.value - lse));
        off.push_back(std::expm1(exponent + error_max + (n + 3) * 2 * Wide(row.u)));
        h += weight.back() * off.back();
    }
    scores.resize(keys);  // the sink has no value
    for (std::int64_t c = 0; c < p.dim_v; ++c) {
        const auto element = flat * static_cast<std::size_t>(p.dim_v) + static_cast<std::size_t>(c);
        wanted.o[element] = output_of(row, scores, weight, off, c, sums, h);
    }
    const Wide relative = (1 + h) * (1 + sums) - 1;
    const Wide roundings = 4 * Wide(row.u) * (std::abs(max) + std::abs(lse) + std::log(n) + 2);
    const Wide stored = p.format_q == ATTEST_F64 ? Wide(0x1p-53) : Wide(0x1p-24);
    const Wide error = -std::log1p(-relative) + roundings;
    wanted.lse[flat] = {static_cast<double>(lse),
                        static_cast<double>(error + stored * (std::abs(lse) + error))};
}

}  // namespace

Wanted want(const TestCase& t, bool rounds_weights) {
    const attest_problem& p = t.problem;
    const auto rows = static_cast<std::size_t>(p.batch * p.heads_q * p.len_q);
    Wanted wanted;
    wanted.o.resize(rows * static_cast<std::size_t>(p.dim_v));
    wanted.lse.resize(rows, {-std::numeric_limits<double>::infinity(), 0});
    const bool wide = p.format_q == ATTEST_F64 || p.format_kv == ATTEST_F64;
    const double u = wide ? 0x1p-53 : 0x1p-24;
    double rounding = p.format_q == ATTEST_F16    ? 0x1p-11
                      : p.format_q == ATTEST_BF16 ? 0x1p-8
                      : p.format_q == ATTEST_F32  ? 0x1p-24
                                                  : 0;
    if (!rounds_weights) rounding = 0;
    for (const Sequence& s : sequences(t)) {
        for (std::int64_t head = 0; head < p.heads_q; ++head) {
            for (std::int64_t i = 0; i < s.queries; ++i)
                row_of({t, s, head, i, u, rounding}, wanted);
        }
    }
    return wanted;
}

}  // namespace attest::cpu
