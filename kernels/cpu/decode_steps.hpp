#pragma once
// cpu_decode, step by step: what a planted bug of kernels/mutants may exchange, as in
// flash_steps.hpp. And its state: one part a split and query, each a triple (m, l, acc) of its own.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/call.hpp"
#include "kernels/cpu/rope.hpp"
#include "kernels/cpu/score.hpp"

namespace attest::cpu {

inline constexpr std::int64_t decode_tile = 64;

/// The correct steps, as DecodeSteps names and explains them.
namespace split {

inline void problem(attest_problem&) {}
inline void segment(Call&, Segment&, std::int64_t) {}

/// The kernel's own choice depends on a sequence's own length alone, so that its result does not
/// depend on what else is in the batch.
inline std::int64_t count(const attest_problem& p, std::int64_t keys) {
    const std::int64_t own = std::min<std::int64_t>(8, (keys + decode_tile - 1) / decode_tile);
    return std::clamp<std::int64_t>(p.splits > 0 ? p.splits : own, 1,
                                    std::max<std::int64_t>(keys, 1));
}

inline SegmentKeys range(std::int64_t keys, std::int64_t splits, std::int64_t split) {
    const std::int64_t each = (keys + splits - 1) / splits;
    return {split * each, std::min(keys, (split + 1) * each)};
}

inline std::int64_t position(const attest_problem&, std::int64_t position) {
    return position;
}

inline const std::byte* row(const Call& call, const Operand& operand, std::int64_t batch,
                            std::int64_t head, std::int64_t j) {
    return call.row(operand, batch, head, j);
}

}  // namespace split

template <typename Real>
struct DecodeBuffers {
    std::int64_t rows, parts;
    RopeTable<Real> rope;
    Real *queries, *keys, *values, *scores, *max, *sum, *output;
    bool *hidden, *seen;
    DecodeBuffers(const attest_problem& p, Scratch& scratch)
        : rows(p.heads_kv > 0 ? p.heads_q / p.heads_kv * p.len_q : 0),
          parts(split::count(p, p.len_kv) * rows),
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

namespace split {

/// m = max m_s, w_s = exp(m_s - m), O = sum w_s acc_s / sum w_s l_s, LSE = m + log(sum w_s l_s), or
/// -inf where no part saw a key. A sink is one part more, with m the sink, l = 1 and no values.
template <typename Real>
Real merge(const Parts<Real>& parts, const Real* sink, Real* merged) {
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

}  // namespace split

struct DecodeSteps {
    /// What the kernel makes of the problem, and of the call and a segment once its splits are
    /// known.
    void (*problem)(attest_problem&) = split::problem;
    void (*segment)(Call&, Segment&, std::int64_t splits) = split::segment;
    /// How many parts a sequence's keys are cut into, and the keys of one.
    std::int64_t (*splits)(const attest_problem&, std::int64_t keys) = split::count;
    SegmentKeys (*range)(std::int64_t keys, std::int64_t splits, std::int64_t split) = split::range;
    /// Where a query's rotation stands, and a key's; where the key or value j of a sequence lies.
    std::int64_t (*position)(const attest_problem&, std::int64_t) = split::position;
    std::int64_t (*key_position)(const attest_problem&, std::int64_t) = split::position;
    const std::byte* (*row)(const Call&, const Operand&, std::int64_t batch, std::int64_t head,
                            std::int64_t j) = split::row;
    /// A query's parts into one, `merged` zeros at first; `sink` may be null. The LSE. Twice, as
    /// the kernel accumulates in f32 or in f64.
    float (*merge_f32)(const Parts<float>&, const float* sink, float* merged) = split::merge;
    double (*merge_f64)(const Parts<double>&, const double* sink, double* merged) = split::merge;

    bool operator==(const DecodeSteps&) const = default;
};

}  // namespace attest::cpu
