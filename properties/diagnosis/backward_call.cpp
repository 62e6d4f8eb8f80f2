// A call of backward with all that its steps are made of: rows as forward stored them, scores of
// all keys, hidden or not.

#include "properties/diagnosis/backward_call.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "properties/diagnosis/backward_model.hpp"
#include "reference/bound/rounding.hpp"
#include "reference/oracle/rotated_head.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::diagnosis {

namespace {

/// Where a row past its sequence's length would stand, and what it would see by order.
std::int64_t position_past(const Problem& p, const Dialect& dialect, std::int64_t b,
                           std::int64_t i) {
    if (dialect.causal == CausalAlignment::top_left || p.mask.lens_q.empty()) return i;
    return i + oracle::keys_valid(p, b) - p.mask.lens_q[static_cast<std::size_t>(b)];
}

std::vector<std::int64_t> visible_past(const Problem& p, const Dialect& dialect, std::int64_t b,
                                       std::int64_t position) {
    std::vector<std::int64_t> keys;
    if (!p.mask.documents_q.empty()) return keys;
    const Window w = p.mask.window;  // the mask tensor is asked by the caller
    const auto reach = [&](std::int64_t limit) {
        return dialect.window_ends == WindowEnds::exclusive && limit > 0 ? limit - 1 : limit;
    };
    for (std::int64_t j = 0; j < oracle::keys_valid(p, b); ++j)
        if (!(p.mask.causal && j > position) && !(w.left >= 0 && j < position - reach(w.left)) &&
            !(w.right >= 0 && j > position + reach(w.right)))
            keys.push_back(j);
    return keys;
}

double kept(const Tensor& keep, const Problem& p, std::int64_t b, std::int64_t h, std::int64_t i,
            std::int64_t j) {
    return keep.bits(keep.flat(b, h, i, j)) != 0 ? 1 / (1 - p.dropout.p) : 0;
}

}  // namespace

std::int64_t document_of(const std::vector<std::int64_t>& documents, std::int64_t at) {
    std::int64_t document = 0;
    for (const std::int64_t length : documents) {
        if (at < length) break;
        at -= length;
        ++document;
    }
    return document;
}

BackwardCall::BackwardCall(const Specification& asked, const Specification& visible,
                           const bound::Expected& forward)
    : call(oracle::prepare(asked.problem, asked.dialect, asked.inputs, oracle::DropoutIn::values)),
      model(bound::resolve(asked.problem, asked.numerics)),
      inputs(asked.inputs) {
    fill_rows(forward);
    fill_scores(visible);
    admit_delta_of_weights();
}

/// D is dO.O and sum P dP alike: a kernel that takes the second has in it what its weights are off
/// by.
void BackwardCall::admit_delta_of_weights() {
    const Problem& p = call.problem;
    for (std::size_t at = 0; at < rows_.size(); ++at) {
        RowFacts& facts = rows_[at];
        if (!facts.is_query) continue;
        const auto n = static_cast<std::int64_t>(at);
        const ModelRow row{*this,
                           n / (p.heads_q * p.len_q),
                           n / p.len_q % p.heads_q,
                           n % p.len_q,
                           facts,
                           facts.lse,
                           facts.delta};
        const double error = delta_of_weights(row, as_forward_kept).error;
        if (std::isfinite(error)) facts.delta.error += error;
    }
}

bool BackwardCall::sees_any(std::int64_t b, std::int64_t h, std::int64_t i) const {
    for (std::int64_t j = 0; j < call.problem.len_kv; ++j)
        if (score(b, h, i, j).visible) return true;
    return false;
}

bool BackwardCall::is_seen(std::int64_t b, std::int64_t h_kv, std::int64_t j) const {
    for (std::int64_t h = h_kv * call.group; h < (h_kv + 1) * call.group; ++h)
        for (std::int64_t i = 0; i < call.problem.len_q; ++i)
            if (row(b, h, i).is_query && score(b, h, i, j).visible) return true;
    return false;
}

double BackwardCall::of_products(double n) const {
    return bound::chain_error(model.dot_depth(n) + 1, model.ua);
}

double BackwardCall::of_sum(double n) const {
    return bound::chain_error(model.sum_depth(n) + 5, model.ua) + 2 * model.ugs;
}

Near BackwardCall::dp_of(const RowFacts& row, std::int64_t b, std::int64_t h_kv, std::int64_t j,
                         std::int64_t channels) const {
    const double* v = call.value(b, h_kv, j);
    Near dp;
    double size = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
        dp.value += row.d_o[c] * v[c];
        size += std::abs(row.d_o[c] * v[c]);
    }
    const double dim_v = static_cast<double>(call.dim_v);
    dp.error = of_products(dim_v) * size + 2 * dim_v * model.oma;
    return dp;
}

void BackwardCall::fill_rows(const bound::Expected& forward) {
    const Problem& p = call.problem;
    const std::vector<double> d_o = inputs[Role::d_o].to_doubles(),
                              o = inputs[Role::o].to_doubles();
    const bool stored = inputs.has(Role::lse);
    const double natural = call.dialect.lse_base == LseBase::two ? std::numbers::ln2 : 1.0;
    const std::size_t dv = static_cast<std::size_t>(call.dim_v);
    rows_.resize(static_cast<std::size_t>(p.batch * p.heads_q * p.len_q));
    for (std::size_t at = 0; at < rows_.size(); ++at) {
        RowFacts& row = rows_[at];
        const std::int64_t n = static_cast<std::int64_t>(at);
        const oracle::KeyRange range =
            oracle::keys_of(p, call.dialect, n / (p.heads_q * p.len_q), n % p.len_q);
        row.is_query = range.is_query;
        row.position = range.is_query
                           ? range.position
                           : position_past(p, call.dialect, n / (p.heads_q * p.len_q), n % p.len_q);
        row.d_o.assign(d_o.begin() + n * call.dim_v, d_o.begin() + (n + 1) * call.dim_v);
        double size = 0;
        for (std::size_t c = 0; c < dv; ++c) {
            const double seen = o[at * dv + c];
            const bound::ExpectedElement& truth = forward.output[at * dv + c];
            // A kernel may take D from what it stored, or from what it had before that.
            Near x{seen, std::abs(seen - truth.value)};
            if (!std::isfinite(x.error)) x.error = 0;
            row.output.push_back(x);
            row.delta = row.delta + row.d_o[c] * x;
            row.sum_of_d_o += row.d_o[c];
            size += std::abs(row.d_o[c] * seen);
        }
        row.delta.error +=
            of_products(static_cast<double>(dv)) * size + 2 * static_cast<double>(dv) * model.oma;
        const double given = inputs.has(Role::d_lse) ? inputs[Role::d_lse].get(n) / natural : 0;
        // 3.1: three units, as backward_bound.cpp has them.
        row.d_lse = {given,
                     (of_products(static_cast<double>(dv + 1)) + 3.1 * model.ua) * std::abs(given)};
        const bound::ExpectedElement& truth = forward.lse[at];
        const double seen = stored ? inputs[Role::lse].get(n) : truth.value;
        row.lse = {natural * seen, natural * (std::abs(seen - truth.value) + truth.bound +
                                              3 * model.ua * std::abs(seen))};
        if (!std::isfinite(row.lse.error)) row.lse.error = 0;
    }
}

void BackwardCall::fill_scores(const Specification& shown) {
    const Problem& p = call.problem;
    const oracle::Prepared seen =
        oracle::prepare(shown.problem, shown.dialect, shown.inputs, oracle::DropoutIn::values);
    oracle::RotatedHead<double> head(call);
    const bool turned = p.rope.style != RopeStyle::none;
    scores_.resize(static_cast<std::size_t>(score_count(p)));
    std::vector<std::int64_t> all(static_cast<std::size_t>(p.len_kv)), visible;
    for (std::size_t j = 0; j < all.size(); ++j) all[j] = static_cast<std::int64_t>(j);
    oracle::RowValues sizes;
    keys_.assign(call.k.begin(), call.k.end());
    for (std::size_t at = 0; at < rows_.size(); ++at) {
        const std::int64_t n = static_cast<std::int64_t>(at), i = n % p.len_q,
                           h = n / p.len_q % p.heads_q, b = n / p.len_q / p.heads_q,
                           h_kv = h / call.group;
        RowFacts& row = rows_[at];
        const bool fresh = turned ? head.load(b, h_kv) : head.load_sizes(b, h_kv);
        if (turned && fresh)
            std::copy(head.keys.begin(), head.keys.end(),
                      keys_.begin() + (b * p.heads_kv + h_kv) * p.len_kv * p.dim_qk);
        if (turned)
            head.turn_query(b, h, i, row.position);
        else
            head.query_sizes(b, h, i);
        const double* q = turned ? head.query.data() : call.query(b, h, i);
        row.query.assign(q, q + p.dim_qk);
        head.sizes(all, all.size(), sizes);
        row.q_max = sizes.q_max;
        row.k_max = sizes.k_max;
        visible_keys(seen, b, h, i, visible);
        const oracle::KeyRange range = oracle::keys_of(p, call.dialect, b, i);
        const std::int64_t document = document_of(p.mask.documents_q, i);
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            const std::size_t y = static_cast<std::size_t>(j);
            BackwardScore& s = scores_[at * all.size() + y];
            s.inside =
                j < oracle::keys_valid(p, b) && document_of(p.mask.documents_kv, j) == document;
            const double* k = key(b, h_kv, j);
            for (std::int64_t c = 0; c < p.dim_qk; ++c) s.dot += q[c] * k[c];
            if (!call.mask.empty()) s.mask = call.mask_at(b, h, i, j);
            if (p.mask.tensor.kind == MaskKind::boolean) s.mask = 0;  // visible_keys says it
            s.ahead = static_cast<double>(row.position - (j - range.key_base));
            if (!call.slopes.empty())
                s.alibi = -call.slopes[static_cast<std::size_t>(h)] * std::abs(s.ahead);
            s.magnitude = sizes.magnitude[y];
            if (turned) s.turn = sizes.turn[y];
            s.dp = dp_of(row, b, h_kv, j, call.dim_v);
            if (p.dropout.p > 0) s.kept = kept(inputs[Role::dropout_keep], p, b, h, i, j);
        }
        if (!row.is_query) visible = visible_past(p, call.dialect, b, row.position);
        if (!row.is_query && !call.mask.empty())
            std::erase_if(visible, [&](std::int64_t j) {
                const double m = call.mask_at(b, h, i, j);
                return p.mask.tensor.kind == MaskKind::boolean ? m == 0 : m == -infinite;
            });
        for (std::int64_t j = range.first; row.is_query && j < range.last; ++j)
            scores_[at * all.size() + static_cast<std::size_t>(j)].masked = true;
        for (const std::int64_t j : visible) {
            BackwardScore& s = scores_[at * all.size() + static_cast<std::size_t>(j)];
            s.visible = true;
            s.masked = false;
            const double x = call.scale * s.dot;
            row.max = std::max(row.max, std::abs(x));
        }
    }
}

}  // namespace attest::diagnosis
