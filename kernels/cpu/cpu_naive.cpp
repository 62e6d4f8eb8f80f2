// Attention as its definition reads: every score of a row, their maximum, the exponentials, their
// sum, the weighted mean of the values. One row at a time, sums in index order.
//
// Assumes nothing of shapes. Accumulates in f32, in f64 where an input is f64; the weights are not
// rounded before they meet the values. Not supported: ring buffers, splits. The backward
// pass is that of backward_steps.hpp.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/backward_steps.hpp"
#include "kernels/cpu/call.hpp"
#include "kernels/cpu/dropout.hpp"
#include "kernels/cpu/rope.hpp"
#include "kernels/cpu/score.hpp"
#include "kernels/cpu/supports.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cpu {
namespace {

constexpr Offer offer{.splits = false, .gradients = true, .dropout = true};

template <typename Real>
struct NaiveBuffers {
    RopeTable<Real> rope;
    Real *query, *keys, *values, *scores, *output;
    bool* hidden;
    NaiveBuffers(const attest_problem& p, Scratch& scratch)
        : rope(p, scratch),
          query(scratch.take<Real>(p.dim_qk)),
          keys(scratch.take<Real>(p.len_kv * p.dim_qk)),
          values(scratch.take<Real>(p.len_kv * p.dim_v)),
          scores(scratch.take<Real>(p.len_kv)),
          output(scratch.take<Real>(p.dim_v)),
          hidden(scratch.take<bool>(p.len_kv)) {}
};

template <typename Real>
void load_keys(const Call& call, const Segment& s, std::int64_t kv_head, NaiveBuffers<Real>& to) {
    const attest_problem& p = call.problem;
    for (std::int64_t j = 0; j < s.keys; ++j) {
        Real* key = to.keys + j * p.dim_qk;
        load_row(call.row(call.k, s.batch, kv_head, s.key0 + j), call.k.format, call.k.stride[3],
                 p.dim_qk, key);
        to.rope.turn_key(j, key);
        load_row(call.row(call.v, s.batch, kv_head, s.key0 + j), call.v.format, call.v.stride[3],
                 p.dim_v, to.values + j * p.dim_v);
    }
}

template <typename Real>
void naive_row(const Call& call, const Segment& s, std::int64_t head, std::int64_t i,
               NaiveBuffers<Real>& at) {
    const attest_problem& p = call.problem;
    load_row(call.q.at(s.batch, head, s.query0 + i), call.q.format, call.q.stride[3], p.dim_qk,
             at.query);
    at.rope.turn_query(i + s.offset, at.query);

    Real max = p.sink != 0 ? static_cast<Real>(call.sinks.real(head))
                           : -std::numeric_limits<Real>::infinity();
    bool empty = p.sink == 0;
    const SegmentKeys range = reach(p, s, i);
    for (std::int64_t j = range.first; j < range.last; ++j) {
        const Bias<Real> bias = bias_at<Real>(call, s, head, i, j);
        at.hidden[j] = bias.hidden;
        if (bias.hidden) continue;
        Real dot = 0;
        for (std::int64_t c = 0; c < p.dim_qk; ++c) dot += at.query[c] * at.keys[j * p.dim_qk + c];
        at.scores[j] = soft_capped(static_cast<Real>(p.scale) * dot, p.softcap) + bias.value;
        max = larger(max, at.scores[j]);
        empty = false;
    }

    for (std::int64_t c = 0; c < p.dim_v; ++c) at.output[c] = 0;
    if (empty) {
        write_row(call, s.batch, head, s.query0 + i, at.output,
                  -std::numeric_limits<Real>::infinity());
        return;
    }
    Real sum = p.sink != 0 ? std::exp(static_cast<Real>(call.sinks.real(head)) - max) : Real{0};
    for (std::int64_t j = range.first; j < range.last; ++j) {
        if (at.hidden[j]) continue;
        const Real weight = std::exp(at.scores[j] - max);
        sum += weight;
        const auto factor = static_cast<Real>(weight_factor(p, cell_of(s, head, i, j)));
        if (factor == 0) continue;
        const Real* value = at.values + j * p.dim_v;
        for (std::int64_t c = 0; c < p.dim_v; ++c) at.output[c] += weight * factor * value[c];
    }
    for (std::int64_t c = 0; c < p.dim_v; ++c) at.output[c] /= sum;
    write_row(call, s.batch, head, s.query0 + i, at.output, max + std::log(sum));
}

template <typename Real>
int naive(const Call& call, Scratch scratch, char* error, std::size_t error_cap) {
    NaiveBuffers<Real> buffers(call.problem, scratch);
    if (!scratch.enough()) return fail(error, error_cap, "the workspace is smaller than asked for");
    buffers.rope.fill();
    for (std::int64_t index = 0; index < segment_count(call); ++index) {
        const Segment s = segment_at(call, index);
        for (std::int64_t kv_head = 0; kv_head < call.problem.heads_kv; ++kv_head) {
            load_keys(call, s, kv_head, buffers);
            for (std::int64_t g = 0; g < call.group; ++g) {
                for (std::int64_t i = 0; i < s.queries; ++i) {
                    naive_row(call, s, kv_head * call.group + g, i, buffers);
                }
            }
        }
    }
    write_absent_rows(call);
    write_keep(call);
    return 0;
}

int supports(void*, const attest_problem* problem, char* reason, std::size_t cap) {
    return answer(offer, problem, reason, cap);
}

std::size_t workspace(void*, const attest_problem* problem) {
    Scratch scratch;
    NaiveBuffers<double> widest(*problem, scratch);
    const std::size_t backward = problem->want_grad != 0 ? backward_workspace(*problem) : 0;
    return std::max(scratch.wanted(), backward);
}

int forward(void*, const attest_call* from, char* error, std::size_t cap) {
    Call call;
    if (!read_call(from, call, error, cap)) return 1;
    const Scratch scratch(from->workspace, from->workspace_bytes);
    return call.wide ? naive<double>(call, scratch, error, cap)
                     : naive<float>(call, scratch, error, cap);
}

/// `state` is a planted bug's table of steps; the kernel itself has none.
int backward(void* state, const attest_call* from, char* error, std::size_t cap) {
    const auto* steps = static_cast<const BackwardSteps<float>*>(state);
    return backward_plain(steps == nullptr ? BackwardSteps<float>{} : *steps, from, error, cap);
}

constexpr const char* manifest = R"({
  "name": "cpu_naive", "version": "1",
  "formats": ["f64", "f32", "f16", "bf16"],
  "features": ["causal", "window", "lens_q", "lens_kv", "mask_bool", "mask_additive", "documents",
               "softcap", "sink", "alibi", "rope", "gqa", "dim_v", "scale",
               "negative_scale", "cache", "paged",
               "layout", "lse", "mixed_formats", "keys_rotated", "ring", "dropout", "d_lse"],
  "gradients": ["q", "k", "v", "mask", "sinks", "slopes"],
  "takes": {"mask_shared": ["batch", "heads", "queries", "keys"]},
  "dialect": {"causal": "bottom_right", "empty_row": "zeros", "softcap": "before_bias",
              "window_ends": "inclusive", "lse_base": "e", "nonfinite": "propagate"},
  "numerics": {"accumulate": "f32", "weights": "f64", "output": "same", "exp_ulp": 1,
               "deterministic": true, "batch_invariant": true, "concurrent": true,
               "deterministic_backward": true}
})";

constexpr attest_kernel_api api{
    .struct_size = sizeof(attest_kernel_api),
    .abi_version = ATTEST_ABI_VERSION,
    .manifest = manifest,
    .supports = supports,
    .create = nullptr,
    .destroy = nullptr,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .append = nullptr,
};

}  // namespace

kernel::BuiltinKernel cpu_naive() {
    return {.id = "cpu_naive",
            .api = &api,
            .summary = "the definition, one row at a time; every feature"};
}

}  // namespace attest::cpu
