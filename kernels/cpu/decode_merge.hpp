#pragma once
// Merging the parts of one query: m = max m_s, w_s = exp(m_s - m), O = sum w_s acc_s / sum w_s l_s,
// LSE = m + log(sum w_s l_s). A sink is one part more, with m the sink, l = 1 and no values.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/call.hpp"
#include "kernels/cpu/decode_state.hpp"
#include "kernels/cpu/defect.hpp"
#include "kernels/cpu/score.hpp"

namespace attest::kernel {

/// The parts of query r: r, r + stride, r + 2 stride, ... below end.
template <typename Real>
struct Parts {
    const DecodeBuffers<Real>& at;
    std::int64_t dim_v, r, stride, end;

    template <typename Visit>
    void each_seen(Visit&& visit) const {
        for (std::int64_t part = r; part < end; part += stride) {
            if (at.seen[part]) visit(part, at.output + part * dim_v);
        }
    }
};

/// The correct merge; the LSE, or -inf where no part saw a key and there is no sink.
template <typename Real>
Real merge_with_frame(const Parts<Real>& parts, const Real* sink, Real* merged) {
    constexpr Real lowest = -std::numeric_limits<Real>::infinity();
    bool seen = sink != nullptr;
    Real max = seen ? *sink : lowest;
    parts.each_seen([&](std::int64_t part, const Real*) {
        seen = true;
        max = larger(max, parts.at.max[part]);
    });
    if (!seen) return lowest;
    const Real frame = max == lowest ? Real{0} : max;
    Real sum = sink != nullptr ? std::exp(*sink - frame) : Real{0};
    parts.each_seen([&](std::int64_t part, const Real* output) {
        const Real weight = std::exp(parts.at.max[part] - frame);
        sum += weight * parts.at.sum[part];
        for (std::int64_t c = 0; c < parts.dim_v; ++c) merged[c] += weight * output[c];
    });
    for (std::int64_t c = 0; c < parts.dim_v; ++c) merged[c] /= sum;
    return max + std::log(sum);
}

/// The planted merges: weights exp(lse) that overflow, or vanish, without a common frame; and every
/// part the same weight.
template <Defect defect, typename Real>
void merge_wrongly(const Parts<Real>& parts, Real* merged, Real& lse) {
    constexpr bool by_lse = defect == Defect::m058_merge_without_max;
    Real sum = 0;
    std::fill_n(merged, parts.dim_v, Real{0});
    parts.each_seen([&](std::int64_t part, const Real* output) {
        const Real own = parts.at.sum[part];
        const Real weight = by_lse ? std::exp(parts.at.max[part] + std::log(own)) : Real{1};
        sum += weight;
        for (std::int64_t c = 0; c < parts.dim_v; ++c) merged[c] += weight * (output[c] / own);
    });
    if (lse == -std::numeric_limits<Real>::infinity()) return;
    for (std::int64_t c = 0; c < parts.dim_v; ++c) merged[c] /= sum;
    if (by_lse) lse = std::log(sum);
}

/// Merges and stores query r of the key head's group; its parts lie `stride` apart below `end`.
template <Defect defect, typename Real>
void merge_parts(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t r,
                 std::int64_t stride, std::int64_t end, DecodeBuffers<Real>& at) {
    const attest_problem& p = call.problem;
    const std::int64_t head = kv_head * call.group + r / s.queries, i = r % s.queries;
    Real* merged = at.output + at.parts * p.dim_v;
    std::fill_n(merged, p.dim_v, Real{0});
    const Real sink = p.sink != 0 ? static_cast<Real>(call.sinks.real(head)) : Real{0};
    const Parts<Real> parts{at, p.dim_v, r, stride, end};
    Real lse = merge_with_frame(parts, p.sink != 0 ? &sink : nullptr, merged);
    if constexpr (defect == Defect::m058_merge_without_max ||
                  defect == Defect::m096_splits_averaged) {
        if (p.sink == 0) merge_wrongly<defect>(parts, merged, lse);
    }
    write_row(call, s.batch, head, s.query0 + i, merged, lse);
}

}  // namespace attest::kernel
