// The backward pass, one query at a time, keys in order: the loop around BackwardSteps.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/backward_steps.hpp"
#include "kernels/cpu/gradient_store.hpp"
#include "kernels/cpu/rope.hpp"
#include "kernels/cpu/score.hpp"
#include "kernels/cpu/supports.hpp"

namespace attest::cpu {
namespace {

template <typename Real>
struct BackwardBuffers {
    RopeTable<Real> rope;
    Real *query, *output, *d_o, *d_query, *keys, *values;
    BackSums<Real> sums;
    SharedSums<Real> shared;
    BackwardBuffers(const attest_problem& p, Scratch& scratch)
        : rope(p, scratch),
          query(scratch.take<Real>(p.dim_qk)),
          output(scratch.take<Real>(p.dim_v)),
          d_o(scratch.take<Real>(p.dim_v)),
          d_query(scratch.take<Real>(p.dim_qk)),
          keys(scratch.take<Real>(p.len_kv * p.dim_qk)),
          values(scratch.take<Real>(p.len_kv * p.dim_v)),
          sums{scratch.take<Real>(p.len_kv * p.dim_qk), scratch.take<Real>(p.len_kv * p.dim_v)},
          shared(p, scratch) {}
};

template <typename Real>
class PlainBackward {
public:
    PlainBackward(const Call& call, const BackwardSteps<Real>& step, BackwardBuffers<Real>& at)
        : call_(call), step_(step), at_(at) {}

    void run() {
        at_.rope.fill();
        write_zeros(call_);
        at_.shared.clear(p_);
        for (std::int64_t index = 0; index < segment_count(call_); ++index) {
            const Segment s = segment_at(call_, index);
            for (std::int64_t kv_head = 0; kv_head < p_.heads_kv; ++kv_head) head(s, kv_head);
        }
        at_.shared.store(call_);
    }

private:
    void head(const Segment& s, std::int64_t kv_head) {
        for (std::int64_t j = 0; j < s.keys; ++j) {
            Real* key = at_.keys + j * p_.dim_qk;
            load_row(call_.k.at(s.batch, kv_head, s.key0 + j), call_.k.format, call_.k.stride[3],
                     p_.dim_qk, key);
            at_.rope.turn_key(j, key);
            load_row(call_.v.at(s.batch, kv_head, s.key0 + j), call_.v.format, call_.v.stride[3],
                     p_.dim_v, at_.values + j * p_.dim_v);
        }
        std::fill_n(at_.sums.d_keys, s.keys * p_.dim_qk, Real{0});
        std::fill_n(at_.sums.d_values, s.keys * p_.dim_v, Real{0});
        for (std::int64_t g = 0; g < call_.group; ++g) {
            step_.begin_head(call_, s, g, at_.sums);
            for (std::int64_t i = 0; i < step_.queries(call_, s); ++i)
                row(s, kv_head * call_.group + g, i);
        }
        finish(s, kv_head);
    }

    void finish(const Segment& s, std::int64_t kv_head) {
        const Real scale = step_.key_scale(call_);
        for (std::int64_t j = 0; j < s.keys; ++j) {
            Real* d_key = at_.sums.d_keys + j * p_.dim_qk;
            for (std::int64_t c = 0; c < p_.dim_qk; ++c) d_key[c] *= scale;
            if (step_.turns_back(call_)) at_.rope.turn_key_back(j, d_key);
            if (call_.d_k)
                store_row(call_.d_k.at(s.batch, kv_head, s.key0 + j), call_.d_k.format,
                          call_.d_k.stride[3], p_.dim_qk, d_key);
            for (std::int64_t c = 0; call_.d_v && c < p_.dim_v; ++c)
                store_row(step_.value_at(call_, s.batch, kv_head, s.key0 + j, c), call_.d_v.format,
                          1, 1, at_.sums.d_values + j * p_.dim_v + c);
        }
    }

    void row(const Segment& s, std::int64_t head, std::int64_t i) {
        const std::int64_t b = s.batch, at = s.query0 + i;
        BackRow<Real> row{call_, s, head, i, at_.query, at_.output, at_.d_o};
        row.d_query = at_.d_query;
        load_row(call_.q.at(b, head, at), call_.q.format, call_.q.stride[3], p_.dim_qk, at_.query);
        at_.rope.turn_query(i + s.offset, at_.query);
        load_row(call_.o.at(b, head, at), call_.o.format, call_.o.stride[3], p_.dim_v, at_.output);
        load_row(call_.d_o.at(b, head, at), call_.d_o.format, call_.d_o.stride[3], p_.dim_v,
                 at_.d_o);
        load_row(call_.lse.at(b, head, at), call_.lse.format, 1, 1, &row.lse);
        row.lse = step_.stored_lse(row);
        row.delta = step_.delta(row) - step_.lse_gradient(row);
        std::fill_n(at_.d_query, p_.dim_qk, Real{0});
        const SegmentKeys range = reach(p_, s, i);
        for (std::int64_t j = 0; j < s.keys; ++j) {
            const Bias<Real> bias = bias_at<Real>(call_, s, head, i, j);
            const bool outside = j < range.first || j >= range.last;
            if (!step_.hidden(row, j, outside || bias.hidden)) pair(row, j, bias.value);
        }
        if (p_.sink != 0) {
            const Real weight = std::exp(static_cast<Real>(call_.sinks.real(head)) - row.lse);
            step_.add_to_sinks(at_.shared.sinks[head], -weight * row.delta);
        }
        const Real scale = step_.query_scale(call_);
        for (std::int64_t c = 0; c < p_.dim_qk; ++c) at_.d_query[c] *= scale;
        if (step_.turns_back(call_)) at_.rope.turn_query_back(i + s.offset, at_.d_query);
        if (call_.d_q)
            store_row(call_.d_q.at(b, head, at), call_.d_q.format, call_.d_q.stride[3], p_.dim_qk,
                      at_.d_query);
    }

    void pair(const BackRow<Real>& row, std::int64_t j, Real bias) {
        BackPair<Real> pair{row, j, at_.keys + j * p_.dim_qk};
        Real dot = 0;
        for (std::int64_t c = 0; c < p_.dim_qk; ++c) dot += row.query[c] * pair.key[c];
        pair.capped = soft_capped(static_cast<Real>(p_.scale) * dot, p_.softcap);
        pair.score = pair.capped + bias;
        pair.probability = step_.probability(pair);
        const Real* value = at_.values + j * p_.dim_v;
        for (std::int64_t c = 0; c < p_.dim_v; ++c) pair.dp += row.d_o[c] * value[c];
        pair.factor = step_.factor(pair);
        pair.dp = step_.dropped_dp(pair);
        pair.ds = step_.ds(pair);
        if (call_.d_mask)
            step_.add_to_mask(at_.shared.mask[mask_index(call_, row.segment, row.head, row.i, j)],
                              pair);
        if (call_.d_slopes) at_.shared.slopes[row.head] += step_.slope_term(pair);
        const Real dx = step_.score_gradient(pair, pair.ds * step_.slope(pair));
        const Real weight = step_.value_weight(pair);
        for (std::int64_t c = 0; c < p_.dim_qk; ++c) {
            row.d_query[c] += dx * pair.key[c];
            at_.sums.d_keys[j * p_.dim_qk + c] += dx * row.query[c];
        }
        for (std::int64_t c = 0; c < p_.dim_v; ++c)
            at_.sums.d_values[j * p_.dim_v + c] += weight * row.d_o[c];
    }

    const Call& call_;
    const attest_problem& p_ = call_.problem;
    const BackwardSteps<Real>& step_;
    BackwardBuffers<Real>& at_;
};

template <typename Real>
int run_plain(const Call& call, const BackwardSteps<Real>& steps, Scratch scratch, char* error,
              std::size_t cap) {
    BackwardBuffers<Real> buffers(call.problem, scratch);
    if (!scratch.enough()) return fail(error, cap, "the workspace is smaller than asked for");
    PlainBackward<Real>(call, steps, buffers).run();
    return 0;
}

}  // namespace

std::size_t backward_workspace(const attest_problem& problem) noexcept {
    Scratch scratch;
    BackwardBuffers<double> widest(problem, scratch);
    return scratch.wanted();
}

int backward_plain(const BackwardSteps<float>& steps, const attest_call* from, char* error,
                   std::size_t cap) {
    Call call;
    if (!read_call(from, call, error, cap)) return 1;
    if (!call.lse || !call.d_o) return fail(error, cap, "backward needs lse and d_o");
    steps.call(call);
    const Scratch scratch(from->workspace, from->workspace_bytes);
    return call.wide ? run_plain<double>(call, {}, scratch, error, cap)
                     : run_plain<float>(call, steps, scratch, error, cap);
}

}  // namespace attest::cpu
