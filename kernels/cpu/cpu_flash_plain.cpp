// A plain tiled flash attention, without SIMD: blocks of 8 queries against tiles of 16 keys, with
// the online softmax. Its steps stand in a table (flash_steps.hpp), of which the planted bugs of
// kernels/mutants exchange one. Where it holds and a mutant is caught, it is the mutation that was
// caught.
//
// Accumulates in f32; weights are rounded to the format of the queries before they meet the values,
// their sum adds them unrounded. Not supported: f64, packed documents, pages, splits, RoPE.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/flash_steps.hpp"
#include "kernels/cpu/supports.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cpu {
namespace {

struct PlainBuffers {
    float *queries, *keys, *values, *scores, *max, *sum, *output, *written;
    bool *hidden, *seen;
    PlainBuffers(const attest_problem& p, Scratch& scratch)
        : queries(scratch.take<float>(plain_rows * p.dim_qk)),
          keys(scratch.take<float>(plain_tile * p.dim_qk)),
          values(scratch.take<float>(plain_tile * p.dim_v)),
          scores(scratch.take<float>(plain_tile)),
          max(scratch.take<float>(plain_rows)),
          sum(scratch.take<float>(plain_rows)),
          output(scratch.take<float>(plain_rows * p.dim_v)),
          written(scratch.take<float>(p.dim_v)),
          hidden(scratch.take<bool>(plain_tile)),
          seen(scratch.take<bool>(plain_rows)) {}
};

class PlainFlash {
public:
    PlainFlash(const Call& call, const FlashSteps& step, PlainBuffers& at)
        : call_(call), step_(step), at_(at) {
        step_.call(call_);
    }

    void run() {
        for (std::int64_t index = 0; index < segment_count(call_); ++index) {
            Segment s = segment_at(call_, index);
            step_.segment(call_, s);
            for (std::int64_t head = 0; head < p_.heads_q; ++head) {
                const std::int64_t kv_head = step_.kv_head(call_, head);
                for (std::int64_t row0 = 0; row0 < s.queries; row0 += plain_rows) {
                    const std::int64_t rows = std::min(plain_rows, s.queries - row0);
                    run_block({step_, call_, s, head, kv_head, row0, rows});
                }
            }
        }
    }

private:
    void run_block(const QueryBlock& block) {
        for (std::int64_t r = 0; r < block.rows; ++r) {
            step_.load_query(block, block.row0 + r, at_.queries + r * p_.dim_qk);
            std::fill_n(at_.output + r * p_.dim_v, p_.dim_v, 0.0f);
            step_.start(row(block, r));
        }
        const SegmentKeys needed = step_.needed(block);
        const std::int64_t end = needed.first < needed.last ? needed.last : 0;
        for (std::int64_t key0 = needed.first / plain_tile * plain_tile; key0 < end;
             key0 += plain_tile) {
            const std::int64_t keys = std::min(plain_tile, block.segment.keys - key0);
            load_tile(block, key0, keys);
            for (std::int64_t r = 0; r < block.rows; ++r) take_tile(row(block, r, key0, keys));
        }
        for (std::int64_t r = 0; r < block.rows; ++r) step_.finish(row(block, r));
    }

    PlainRow row(const QueryBlock& block, std::int64_t r, std::int64_t key0 = 0,
                 std::int64_t keys = 0) const {
        return {
            block, block.row0 + r, at_.max[r], at_.sum[r], at_.seen[r], at_.output + r * p_.dim_v,
            key0,  keys,           at_.scores, at_.hidden, at_.values,  at_.written};
    }

    void load_tile(const QueryBlock& block, std::int64_t key0, std::int64_t keys) const {
        const std::int64_t b = block.segment.batch, h = block.kv_head;
        for (std::int64_t j = 0; j < keys; ++j) {
            step_.load(call_.k, call_.k.at(b, h, key0 + j), p_.dim_qk, at_.keys + j * p_.dim_qk);
            step_.load(call_.v, call_.v.at(b, h, key0 + j), p_.dim_v, at_.values + j * p_.dim_v);
        }
    }

    void take_tile(const PlainRow& row) const {
        const float* query = at_.queries + (row.i - row.block.row0) * p_.dim_qk;
        for (std::int64_t n = 0; n < row.keys; ++n) {
            const std::int64_t j = row.key0 + n;
            Bias<float> bias{0, !step_.visible(row.block, row.i, j)};
            if (!bias.hidden) bias = step_.mask(row.block, row.i, j);
            row.hidden[n] = bias.hidden;
            const float added = bias.value + step_.alibi(row.block, row.i, j);
            const float dot = step_.dot(row.block, query, at_.keys + n * p_.dim_qk);
            row.scores[n] = step_.score(row.block, dot, added);
        }
        step_.absorb(row);
    }

    Call call_;
    const attest_problem& p_ = call_.problem;
    const FlashSteps& step_;
    PlainBuffers& at_;
};

/// `state` is a planted bug's table of steps; the kernel itself has none.
int forward(void* state, const attest_call* from, char* error, std::size_t cap) {
    constexpr FlashSteps correct;
    Call call;
    if (!read_call(from, call, error, cap)) return 1;
    Scratch scratch(from->workspace, from->workspace_bytes);
    PlainBuffers buffers(call.problem, scratch);
    if (!scratch.enough()) return fail(error, cap, "the workspace is smaller than asked for");
    const FlashSteps& steps = state == nullptr ? correct : *static_cast<const FlashSteps*>(state);
    PlainFlash(call, steps, buffers).run();
    write_absent_rows(call);
    write_keep(call, steps.kept);
    return 0;
}

int supports(void*, const attest_problem* problem, char* reason, std::size_t cap) {
    constexpr Offer offer{.documents = false,
                          .paged = false,
                          .ring = false,
                          .splits = false,
                          .rope = false,
                          .f64 = false,
                          .dropout = true};
    return answer(offer, problem, reason, cap);
}

std::size_t workspace(void*, const attest_problem* problem) {
    Scratch scratch;
    PlainBuffers buffers(*problem, scratch);
    return scratch.wanted();
}

constexpr attest_kernel_api api{
    .struct_size = sizeof(attest_kernel_api),
    .abi_version = ATTEST_ABI_VERSION,
    .manifest = R"({
  "name": "cpu_flash_plain", "version": "1",
  "formats": ["f32", "f16", "bf16"],
  "features": ["causal", "window", "lens_q", "lens_kv", "mask_bool", "mask_additive", "softcap",
               "sink", "alibi", "gqa", "dim_v", "scale", "cache", "layout", "lse",
               "mixed_formats", "negative_scale", "dropout"],
  "takes": {"mask_shared": ["batch", "heads", "queries", "keys"]},
  "dialect": {"causal": "bottom_right", "empty_row": "zeros", "softcap": "before_bias",
              "window_ends": "inclusive", "lse_base": "e", "nonfinite": "propagate"},
  "numerics": {"accumulate": "f32", "weights": "same", "output": "same", "exp_ulp": 1, "tile": 16,
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

kernel::BuiltinKernel cpu_flash_plain() {
    return {.id = "cpu_flash_plain",
            .api = &api,
            .summary = "tiled, without SIMD: the mutants' own body"};
}

}  // namespace attest::cpu
