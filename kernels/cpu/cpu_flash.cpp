// cpu_flash: tiled attention with an online softmax, SIMD by Highway (flash_simd.cpp holds the
// inner loops, this file what surrounds them). Any shape, any strides, contiguous or paged keys.
//
// Accumulates in f32, in f64 where an input is f64. The weights are rounded to the format of the
// queries before they meet the values; their sum adds them unrounded. A key that is hidden is never
// multiplied, and one at or past a sequence's length is never read. Not supported: ring buffers,
// splits.

#include "kernels/cpu/flash.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/dropout.hpp"
#include "kernels/cpu/score.hpp"
#include "kernels/cpu/supports.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cpu {

template <typename Real>
void pack_tile(const Call& call, const Segment& s, std::int64_t kv_head, std::int64_t key0,
               std::int64_t count, FlashBuffers<Real>& to) noexcept {
    const attest_problem& p = call.problem;
    for (std::int64_t j = 0; j < count; ++j) {
        load_row(call.row(call.k, s.batch, kv_head, s.key0 + key0 + j), call.k.format,
                 call.k.stride[3], p.dim_qk, to.row);
        to.rope.turn_key(key0 + j, to.row);
        for (std::int64_t c = 0; c < p.dim_qk; ++c) to.keys[c * flash_tile + j] = to.row[c];
        Real* value = to.values + j * to.value_stride;
        load_row(call.row(call.v, s.batch, kv_head, s.key0 + key0 + j), call.v.format,
                 call.v.stride[3], p.dim_v, value);
        std::fill(value + p.dim_v, value + to.value_stride, Real{0});
    }
    const std::int64_t padded = std::min(flash_tile, (count + 15) / 16 * 16);
    for (std::int64_t c = 0; c < p.dim_qk; ++c) {
        std::fill(to.keys + c * flash_tile + count, to.keys + c * flash_tile + padded, Real{0});
    }
}

template <typename Real>
std::uint64_t visible_keys(const Call& call, const Segment& s, std::int64_t head, std::int64_t i,
                           std::int64_t key0, std::int64_t count, FlashBuffers<Real>& to) noexcept {
    const SegmentKeys keys = reach(call.problem, s, i);
    const std::int64_t first = std::max<std::int64_t>(keys.first - key0, 0);
    const std::int64_t last = std::min(keys.last - key0, count);
    if (first >= last) return 0;
    constexpr std::uint64_t all = ~std::uint64_t{0};
    std::uint64_t bits = all >> (flash_tile - last) & all << first;
    if (call.problem.mask_kind == ATTEST_MASK_NONE && call.problem.alibi == 0) return bits;
    for (std::int64_t j = first; j < last; ++j) {
        const Bias<Real> bias = bias_at<Real>(call, s, head, i, key0 + j);
        to.bias[j] = bias.value;
        if (bias.hidden) bits &= ~(std::uint64_t{1} << j);
    }
    return bits;
}

std::uint64_t kept_keys(const Call& call, const Segment& s, std::int64_t head, std::int64_t i,
                        std::int64_t key0, std::int64_t count, std::uint64_t keys) noexcept {
    if (call.problem.dropout_p == 0) return keys;
    for (std::int64_t j = 0; j < count; ++j)
        if (!is_kept(call.problem, cell_of(s, head, i, key0 + j))) keys &= ~(std::uint64_t{1} << j);
    return keys;
}

template <typename Real>
void start_rows(const Call& call, const Segment& s, std::int64_t kv_head,
                FlashBuffers<Real>& to) noexcept {
    const attest_problem& p = call.problem;
    for (std::int64_t g = 0; g < call.group; ++g) {
        const std::int64_t head = kv_head * call.group + g;
        for (std::int64_t i = 0; i < s.queries; ++i) {
            const std::int64_t r = g * s.queries + i;
            Real* query = to.queries + r * p.dim_qk;
            load_row(call.q.at(s.batch, head, s.query0 + i), call.q.format, call.q.stride[3],
                     p.dim_qk, query);
            to.rope.turn_query(i + s.offset, query);
            // The sink is one score that is there before any key: m = sink, l = exp(0) = 1.
            to.seen[r] = p.sink != 0;
            to.max[r] = p.sink != 0 ? static_cast<Real>(call.sinks.real(head))
                                    : -std::numeric_limits<Real>::infinity();
            to.sum[r] = p.sink != 0 ? Real{1} : Real{0};
        }
    }
    std::fill_n(to.output, call.group * s.queries * to.value_stride, Real{0});
}

template <typename Real>
void finish_rows(const Call& call, const Segment& s, std::int64_t kv_head,
                 FlashBuffers<Real>& from) noexcept {
    for (std::int64_t g = 0; g < call.group; ++g) {
        for (std::int64_t i = 0; i < s.queries; ++i) {
            const std::int64_t r = g * s.queries + i;
            Real* output = from.output + r * from.value_stride;
            Real lse = -std::numeric_limits<Real>::infinity();
            if (from.seen[r]) {
                const Real sum = from.sum[r];
                const auto factor = static_cast<Real>(kept_factor(call.problem));
                for (std::int64_t c = 0; c < call.problem.dim_v; ++c)
                    output[c] = output[c] / sum * factor;
                lse = from.max[r] + std::log(sum);
            }
            write_row(call, s.batch, kv_head * call.group + g, s.query0 + i, output, lse);
        }
    }
}

namespace {

constexpr Offer offer{.splits = false, .gradients = true, .dropout = true};

template <typename Real>
int flash(const Call& call, Scratch scratch, char* error, std::size_t cap) {
    FlashBuffers<Real> buffers(call.problem, scratch);
    if (!scratch.enough()) return fail(error, cap, "the workspace is smaller than asked for");
    buffers.rope.fill();
    for (std::int64_t index = 0; index < segment_count(call); ++index) {
        const Segment s = segment_at(call, index);
        if (s.queries == 0) continue;
        // reach() moves with the query: the first query's first key and the last one's last key
        // enclose what any of them needs.
        const std::int64_t first = reach(call.problem, s, 0).first / flash_tile * flash_tile;
        const std::int64_t last = reach(call.problem, s, s.queries - 1).last;
        for (std::int64_t kv_head = 0; kv_head < call.problem.heads_kv; ++kv_head) {
            start_rows(call, s, kv_head, buffers);
            for (std::int64_t key0 = first; key0 < last; key0 += flash_tile) {
                const std::int64_t count = std::min(flash_tile, s.keys - key0);
                pack_tile(call, s, kv_head, key0, count, buffers);
                take_tile(call, s, kv_head, key0, count, buffers);
            }
            finish_rows(call, s, kv_head, buffers);
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
    FlashBuffers<double> widest(*problem, scratch);
    const std::size_t backward = problem->want_grad != 0 ? flash_backward_workspace(*problem) : 0;
    return std::max(scratch.wanted(), backward);
}

int forward(void*, const attest_call* from, char* error, std::size_t cap) {
    Call call;
    if (!read_call(from, call, error, cap)) return 1;
    const Scratch scratch(from->workspace, from->workspace_bytes);
    return call.wide ? flash<double>(call, scratch, error, cap)
                     : flash<float>(call, scratch, error, cap);
}

int backward(void*, const attest_call* from, char* error, std::size_t cap) {
    return flash_backward(from, error, cap);
}

constexpr attest_kernel_api api{
    .struct_size = sizeof(attest_kernel_api),
    .abi_version = ATTEST_ABI_VERSION,
    .manifest = R"({
  "name": "cpu_flash", "version": "1",
  "formats": ["f64", "f32", "f16", "bf16"],
  "features": ["causal", "window", "lens_q", "lens_kv", "mask_bool", "mask_additive", "documents",
               "softcap", "sink", "alibi", "rope", "gqa", "dim_v", "scale",
               "negative_scale", "cache", "paged",
               "layout", "lse", "mixed_formats", "keys_rotated", "ring", "dropout", "d_lse"],
  "gradients": ["q", "k", "v", "mask", "sinks", "slopes"],
  "takes": {"mask_shared": ["batch", "heads", "queries", "keys"]},
  "dialect": {"causal": "bottom_right", "empty_row": "zeros", "softcap": "before_bias",
              "window_ends": "inclusive", "lse_base": "e", "nonfinite": "propagate"},
  "numerics": {"accumulate": "f32", "weights": "same", "output": "same", "exp_ulp": 2, "tile": 64,
               "sum_weights": "unrounded", "deterministic": true, "batch_invariant": true,
               "concurrent": true,
               "gradient_structure": true, "deterministic_backward": true}
})",
    .supports = supports,
    .create = nullptr,
    .destroy = nullptr,
    .workspace = workspace,
    .forward = forward,
    .backward = backward,
    .append = nullptr,
};

}  // namespace

kernel::BuiltinKernel cpu_flash() {
    return {.id = "cpu_flash",
            .api = &api,
            .summary = "tiled, online softmax, SIMD; every feature but splits"};
}

template std::uint64_t visible_keys<float>(const Call&, const Segment&, std::int64_t, std::int64_t,
                                           std::int64_t, std::int64_t,
                                           FlashBuffers<float>&) noexcept;
template std::uint64_t visible_keys<double>(const Call&, const Segment&, std::int64_t, std::int64_t,
                                            std::int64_t, std::int64_t,
                                            FlashBuffers<double>&) noexcept;

}  // namespace attest::cpu
