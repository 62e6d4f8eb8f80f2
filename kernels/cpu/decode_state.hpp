#pragma once
// The state of cpu_decode: one part a split and query, each a triple (m, l, acc) of its own.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/call.hpp"
#include "kernels/cpu/defect.hpp"
#include "kernels/cpu/rope.hpp"

namespace attest::kernel {

inline constexpr std::int64_t decode_tile = 64;

/// The kernel's own choice of splits depends on a sequence's own length alone, so that its result
/// does not depend on what else is in the batch.
inline std::int64_t split_count(const attest_problem& p, std::int64_t keys) noexcept {
    const std::int64_t own = std::min<std::int64_t>(8, (keys + decode_tile - 1) / decode_tile);
    return std::clamp<std::int64_t>(p.splits > 0 ? p.splits : own, 1,
                                    std::max<std::int64_t>(keys, 1));
}

template <Defect defect>
KeyRange split_range(std::int64_t keys, std::int64_t splits, std::int64_t split) noexcept {
    std::int64_t each = (keys + splits - 1) / splits;
    if constexpr (defect == Defect::m093_split_remainder_dropped) each = keys / splits;
    constexpr std::int64_t overlap = defect == Defect::m094_splits_overlap ? 1 : 0;
    return {split * each, std::min(keys, (split + 1) * each + overlap)};
}

template <typename Real>
struct DecodeBuffers {
    std::int64_t rows, parts;
    Rope<Real> rope;
    Real *queries, *keys, *values, *scores, *max, *sum, *output;
    bool *hidden, *seen;
    DecodeBuffers(const attest_problem& p, Scratch& scratch)
        : rows(p.heads_kv > 0 ? p.heads_q / p.heads_kv * p.len_q : 0),
          parts(split_count(p, p.len_kv) * rows),
          rope(p, scratch),
          queries(scratch.take<Real>(rows * p.dim_qk)),
          keys(scratch.take<Real>(decode_tile * p.dim_qk)),
          values(scratch.take<Real>(decode_tile * p.dim_v)),
          scores(scratch.take<Real>(decode_tile)),
          max(scratch.take<Real>(parts)),
          sum(scratch.take<Real>(parts)),
          output(scratch.take<Real>((parts + 1) * p.dim_v)),
          hidden(scratch.take<bool>(decode_tile)),
          seen(scratch.take<bool>(parts)) {}
};

template <typename Real>
Real lane_dot(const Real* a, const Real* b, std::int64_t count) noexcept {
    Real lanes[8] = {};
    std::int64_t c = 0;
    for (; c + 8 <= count; c += 8) {
        for (int lane = 0; lane < 8; ++lane) lanes[lane] += a[c + lane] * b[c + lane];
    }
    for (; c < count; ++c) lanes[c % 8] += a[c] * b[c];
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/// One part takes in the keys [first, last) of a tile, of which it sees at least one; `max` is the
/// largest score with theirs.
template <typename Real>
void absorb_keys(std::int64_t part, std::int64_t first, std::int64_t last, Real max,
                 std::int64_t dim_v, DecodeBuffers<Real>& at) noexcept {
    const Real frame = max == -std::numeric_limits<Real>::infinity() ? Real{0} : max;
    const Real rescale = std::exp(at.max[part] - frame);
    Real* output = at.output + part * dim_v;
    for (std::int64_t c = 0; c < dim_v; ++c) output[c] *= rescale;
    Real sum = 0;
    for (std::int64_t j = first; j < last; ++j) {
        if (at.hidden[j]) continue;
        const Real weight = std::exp(at.scores[j] - frame);
        sum += weight;
        const Real* value = at.values + j * dim_v;
        for (std::int64_t c = 0; c < dim_v; ++c) output[c] += weight * value[c];
    }
    at.seen[part] = true;
    at.max[part] = max;
    at.sum[part] = at.sum[part] * rescale + sum;
}

}  // namespace attest::kernel
