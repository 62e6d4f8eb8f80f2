// cpu_decode: split-KV attention over a cache. The keys of a sequence are cut into `splits` ranges,
// each range gives every query its own (m, l, acc) by the online softmax, and the parts are merged.
// Keys and values are read where they lie, contiguous or in pages. What a planted bug may exchange
// stands in a table of steps (decode_steps.hpp).
//
// Accumulates in f32, in f64 where an input is f64; weights are not rounded before they meet the
// values. Dot products run in eight interleaved sums. Supports any number of queries; not dropout,
// gradients, ring buffers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/decode_steps.hpp"
#include "kernels/cpu/supports.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cpu {
namespace {

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

template <typename Real>
class SplitDecode {
public:
    SplitDecode(const Call& call, const DecodeSteps& step, DecodeBuffers<Real>& at)
        : call_(call), step_(step), at_(at) {}

    void run() {
        at_.rope.fill();
        for (std::int64_t index = 0; index < segment_count(call_); ++index) {
            Segment s = segment_at(call_, index);
            splits_ = step_.splits(p_, s.keys);
            step_.segment(call_, s, splits_);
            for (std::int64_t kv_head = 0; kv_head < p_.heads_kv; ++kv_head) {
                run_head(s, kv_head);
            }
        }
    }

private:
    void run_head(const Segment& s, std::int64_t kv_head) {
        rows_ = call_.group * s.queries;
        for (std::int64_t r = 0; r < rows_; ++r) {
            const std::int64_t head = kv_head * call_.group + r / s.queries, i = r % s.queries;
            Real* query = at_.queries + r * p_.dim_qk;
            load_row(call_.q.at(s.batch, head, s.query0 + i), call_.q.format, call_.q.stride[3],
                     p_.dim_qk, query);
            at_.rope.turn_query(step_.position(p_, i + s.offset), query);
        }
        for (std::int64_t split = 0; split < splits_; ++split) run_split(s, kv_head, split);
        for (std::int64_t r = 0; r < rows_; ++r) merge(s, kv_head, r);
    }

    void run_split(const Segment& s, std::int64_t kv_head, std::int64_t split) {
        std::fill_n(at_.max + split * rows_, rows_, -std::numeric_limits<Real>::infinity());
        std::fill_n(at_.sum + split * rows_, rows_, Real{0});
        std::fill_n(at_.seen + split * rows_, rows_, false);
        std::fill_n(at_.output + split * rows_ * p_.dim_v, rows_ * p_.dim_v, Real{0});
        const SegmentKeys keys = step_.range(s.keys, splits_, split);
        const std::int64_t needed_first = reach(p_, s, 0).first;
        const std::int64_t needed_last = reach(p_, s, s.queries - 1).last;
        for (std::int64_t key0 = keys.first; key0 < keys.last; key0 += decode_tile) {
            const std::int64_t count = std::min(decode_tile, keys.last - key0);
            if (key0 + count <= needed_first || key0 >= needed_last) continue;
            load_tile(s, kv_head, key0, count);
            for (std::int64_t r = 0; r < rows_; ++r) {
                take_tile(s, kv_head, split * rows_ + r, r, key0, count);
            }
        }
    }

    void load_tile(const Segment& s, std::int64_t kv_head, std::int64_t key0, std::int64_t count) {
        for (std::int64_t j = 0; j < count; ++j) {
            Real* key = at_.keys + j * p_.dim_qk;
            load_row(step_.row(call_, call_.k, s.batch, kv_head, s.key0 + key0 + j), call_.k.format,
                     call_.k.stride[3], p_.dim_qk, key);
            at_.rope.turn_key(step_.key_position(p_, key0 + j), key);
            load_row(step_.row(call_, call_.v, s.batch, kv_head, s.key0 + key0 + j), call_.v.format,
                     call_.v.stride[3], p_.dim_v, at_.values + j * p_.dim_v);
        }
    }

    void take_tile(const Segment& s, std::int64_t kv_head, std::int64_t part, std::int64_t r,
                   std::int64_t key0, std::int64_t count) {
        const std::int64_t head = kv_head * call_.group + r / s.queries, i = r % s.queries;
        const SegmentKeys keys = reach(p_, s, i);
        const std::int64_t first = std::max<std::int64_t>(keys.first - key0, 0);
        const std::int64_t last = std::min(keys.last - key0, count);
        bool any = false;
        Real max = at_.max[part];
        for (std::int64_t j = first; j < last; ++j) {
            const Bias<Real> bias = bias_at<Real>(call_, s, head, i, key0 + j);
            at_.hidden[j] = bias.hidden;
            if (bias.hidden) continue;
            const Real dot =
                lane_dot(at_.queries + r * p_.dim_qk, at_.keys + j * p_.dim_qk, p_.dim_qk);
            at_.scores[j] = soft_capped(static_cast<Real>(p_.scale) * dot, p_.softcap) + bias.value;
            max = larger(at_.scores[j], max);
            any = true;
        }
        if (!any) return;
        absorb_keys(part, first, last, max, p_.dim_v, at_);
    }

    /// Row r of the key head's group, whose parts lie rows_ apart.
    void merge(const Segment& s, std::int64_t kv_head, std::int64_t r) {
        const std::int64_t head = kv_head * call_.group + r / s.queries, i = r % s.queries;
        Real* merged = at_.output + at_.parts * p_.dim_v;
        std::fill_n(merged, p_.dim_v, Real{0});
        const Real sink = p_.sink != 0 ? static_cast<Real>(call_.sinks.real(head)) : Real{0};
        const Parts<Real> parts{at_, p_.dim_v, r, rows_, splits_ * rows_};
        const Real* part_more = p_.sink != 0 ? &sink : nullptr;
        Real lse = 0;
        if constexpr (std::is_same_v<Real, float>) {
            lse = step_.merge_f32(parts, part_more, merged);
        } else {
            lse = step_.merge_f64(parts, part_more, merged);
        }
        write_row(call_, s.batch, head, s.query0 + i, merged, lse);
    }

    Call call_;
    const attest_problem& p_ = call_.problem;
    const DecodeSteps& step_;
    DecodeBuffers<Real>& at_;
    std::int64_t splits_ = 1, rows_ = 0;
};

template <typename Real>
int decode(const Call& call, const DecodeSteps& step, Scratch scratch, char* error,
           std::size_t cap) {
    DecodeBuffers<Real> buffers(call.problem, scratch);
    if (!scratch.enough()) return fail(error, cap, "the workspace is smaller than asked for");
    SplitDecode<Real>(call, step, buffers).run();
    write_absent_rows(call);
    return 0;
}

/// `state` is a planted bug's table of steps; the kernel itself has none.
const DecodeSteps& steps(void* state) {
    static constexpr DecodeSteps correct;
    return state == nullptr ? correct : *static_cast<const DecodeSteps*>(state);
}

int forward(void* state, const attest_call* from, char* error, std::size_t cap) {
    Call call;
    if (!read_call(from, call, error, cap)) return 1;
    steps(state).problem(call.problem);
    const Scratch scratch(from->workspace, from->workspace_bytes);
    return call.wide ? decode<double>(call, steps(state), scratch, error, cap)
                     : decode<float>(call, steps(state), scratch, error, cap);
}

int supports(void*, const attest_problem* problem, char* reason, std::size_t cap) {
    return answer(Offer{}, problem, reason, cap);
}

std::size_t workspace(void* state, const attest_problem* problem) {
    attest_problem p = *problem;
    steps(state).problem(p);
    Scratch scratch;
    DecodeBuffers<double> widest(p, scratch);
    return scratch.wanted();
}

constexpr attest_kernel_api api{
    .struct_size = sizeof(attest_kernel_api),
    .abi_version = ATTEST_ABI_VERSION,
    .manifest = R"({
  "name": "cpu_decode", "version": "1",
  "formats": ["f64", "f32", "f16", "bf16"],
  "features": ["causal", "window", "lens_q", "lens_kv", "mask_bool", "mask_additive", "documents",
               "softcap", "sink", "alibi", "rope", "gqa", "dim_v", "scale",
               "negative_scale", "cache", "paged",
               "splits", "layout", "lse", "mixed_formats", "keys_rotated", "ring"],
  "takes": {"mask_shared": ["batch", "heads", "queries", "keys"]},
  "dialect": {"causal": "bottom_right", "empty_row": "zeros", "softcap": "before_bias",
              "window_ends": "inclusive", "lse_base": "e", "nonfinite": "propagate"},
  "numerics": {"accumulate": "f32", "weights": "f64", "output": "same", "exp_ulp": 1, "tile": 64,
               "sum_weights": "unrounded", "deterministic": true, "batch_invariant": true,
               "concurrent": true}
})",
    .supports = supports,
    .create = nullptr,
    .destroy = nullptr,
    .workspace = workspace,
    .forward = forward,
    .backward = nullptr,
    .append = nullptr,
};

}  // namespace

kernel::BuiltinKernel cpu_decode() {
    return {.id = "cpu_decode",
            .api = &api,
            .summary = "split-KV with a merge, contiguous or paged cache"};
}

}  // namespace attest::cpu
