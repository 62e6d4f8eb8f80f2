#include "reference/oracle/gradient_book.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bound/rounding.hpp"
#include "reference/oracle/gradient_own_error.hpp"

namespace attest::oracle {

void GradientErrors::disclaim(std::size_t first, std::size_t count) {
    for (std::size_t at = first; at < first + count; ++at) add(at, 0, infinite);
}

std::vector<bound::ExpectedElement> GradientErrors::expect(const std::vector<double>& values,
                                                           double own_once,
                                                           double bound_once) const {
    std::vector<bound::ExpectedElement> out(values.size());
    for (std::size_t at = 0; at < values.size(); ++at) {
        if (touched[at] == 0) continue;
        out[at] = {.value = values[at],
                   .error = own[at] + own_once + double_rounding(values[at]),
                   .bound = bound[at] + bound_once};
        if (!std::isfinite(values[at])) out[at] = {.value = 0, .error = 0, .bound = infinite};
        if (!(out[at].bound >= 0)) out[at].bound = infinite;
    }
    return out;
}

// Each head's sum is at most the sum of the sizes of its terms, and rounded once.
void GradientErrors::round_heads(double unit, double under, double most) {
    for (std::size_t at = 0; at < of_heads.size(); ++at) {
        if (touched[at] == 0) continue;
        bound[at] +=
            of_heads[at] < most ? bound::evaluation * unit * of_heads[at] + under : infinite;
    }
}

GradientBook::GradientBook(const Prepared& call, const bound::KernelModel& model,
                           const ArithmeticError& arithmetic, std::vector<double> frequency)
    : call_(call),
      p_(call.problem),
      model_(model),
      arithmetic_(arithmetic),
      frequency_(std::move(frequency)),
      row_(model, static_cast<double>(p_.len_q * call.group), static_cast<double>(p_.len_kv)) {
    d_q.resize(p_.batch * p_.heads_q * p_.len_q * p_.dim_qk);
    d_k.resize(p_.batch * p_.heads_kv * p_.len_kv * p_.dim_qk);
    d_v.resize(p_.batch * p_.heads_kv * p_.len_kv * call.dim_v);
    if (rounds_heads())
        for (GradientErrors* sums : {&d_k, &d_v}) sums->of_heads.assign(sums->own.size(), 0.0);
    if (p_.mask.tensor.kind == MaskKind::additive)
        d_mask.resize(static_cast<std::int64_t>(call.mask.size()));
    mask_terms_ = static_cast<double>(p_.batch * p_.heads_q * p_.len_q);
    if (p_.mask.tensor.shared_keys) mask_terms_ *= static_cast<double>(p_.len_kv);
    if (p_.sink) d_sinks.resize(p_.heads_q);
    if (p_.alibi) d_slopes.resize(p_.heads_q);
}

void GradientBook::add(const GradientEntry& e) {
    row_.weigh(e.row, e.back);
    if (row_.overflows()) disclaim(e.b, e.h, e.i, e.visible);
    own_scores(call_, model_, arithmetic_, e, own_);
    const double scale = std::abs(call_.scale);
    const std::size_t d = static_cast<std::size_t>(p_.dim_qk);
    const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
    const std::int64_t key_row = (e.b * p_.heads_kv + e.h / call_.group) * p_.len_kv;
    const std::size_t q_at =
        static_cast<std::size_t>((e.b * p_.heads_q + e.h) * p_.len_q + e.i) * d;
    // 1.01 covers the products of two errors.
    const double own_weight = 1.01 * (2 * e.own.weight + 2 * e.own.sum +
                                      arithmetic_.sum(static_cast<double>(p_.len_q * call_.group)) +
                                      3 * arithmetic_.unit);
    // 2.02: that for both operands.
    const double rotation =
        model_.rope ? 2.02 * (9 * model_.ua + std::max(model_.up, model_.ugs)) : 0;
    // As in score_error().
    const double angle = model_.rope ? 1.01 * (2 * model_.rope_log_base + 7) * model_.ua : 0;
    // A coordinate that underflows where it is scaled or turned, before it is multiplied by dX: two
    // products and their sum, and what turning dQ or dK back makes of them, below 3 times that.
    // So is one that underflows where a unit is fed it.
    const double lost =
        (1 + scale) *
        (1.01 * model_.omf +
         (model_.rope ? 4 * model_.oma + 3 * std::max(model_.omp, model_.omgs) : model_.oma));
    for (std::size_t j = 0; j < e.visible.size(); ++j) {
        const std::int64_t key = e.visible[j];
        const std::size_t k_at = static_cast<std::size_t>(key_row + key) * d;
        const std::size_t v_at = static_cast<std::size_t>(key_row + key) * dim_v;
        const double* key_size = e.key_size + key * p_.dim_qk;
        const double positions = model_.rope
                                     ? std::abs(static_cast<double>(p_.rope.offset + e.position)) +
                                           std::abs(static_cast<double>(p_.rope.offset + key))
                                     : 0;
        for (std::size_t c = 0; c < d; ++c) {
            double turning = 0;
            if (model_.rope)
                turning = row_.size_dx()[j] * (rotation + angle * frequency_[c] * positions);
            const double own_q = scale * e.query_size[c], own_k = scale * key_size[c];
            const double underflown = lost * (row_.size_dx()[j] + 2 * model_.omgs);
            const double of_k = own_q * (row_.by_queries()[j] + turning) + underflown;
            d_k.add(k_at + c, own_q * own_[j], of_k);
            if (rounds_heads()) d_k.of_heads[k_at + c] += own_q * row_.size_dx()[j] + of_k;
            const double of_key = model_.rope ? row_.by_keys()[j] + turning : row_.alone()[j];
            d_q.add(q_at + c, own_k * own_[j], own_k * of_key + underflown);
        }
        for (std::size_t c = 0; c < dim_v; ++c) {
            const double size = std::abs(e.d_output[c]);
            const double of_v =
                (size + model_.omf) * row_.weight()[j] + model_.omf * e.row.weight[j];
            d_v.add(v_at + c, size * (e.row.weight[j] * own_weight + 2 * arithmetic_.weight_floor),
                    of_v);
            if (rounds_heads()) d_v.of_heads[v_at + c] += size * e.row.weight[j] + of_v;
        }
    }
    // A row of a sink alone adds up nothing.
    if (!model_.rope && !e.visible.empty()) add_common(e, q_at);
    if (!d_mask.own.empty()) add_mask(e);
    if (p_.alibi) add_slope(e);
    if (!e.row.sink) return;
    const double rows = static_cast<double>(p_.batch * p_.heads_q * p_.len_q);
    const std::size_t j = e.visible.size();
    d_sinks.add(static_cast<std::size_t>(e.h), 2 * own_[j],
                row_.of_ds()[j] + row_.of_sum(rows) * row_.size_ds()[j]);
}

// dmask is the sum of dX, of dS where the cap comes before the bias, over what shares the element:
// sequences, heads, queries and keys. Where subnormal numbers are flushed each addition may lose
// one.
void GradientBook::add_mask(const GradientEntry& e) {
    const bool late = call_.dialect.softcap == SoftcapPlace::after_bias;
    const double flushed = model_.flushes ? model_.oma : 0;
    for (std::size_t j = 0; j < e.visible.size(); ++j) {
        const double size = late ? row_.size_dx()[j] : row_.size_ds()[j];
        const double error = late ? row_.of_dx()[j] : row_.of_ds()[j];
        d_mask.add(call_.mask_index(e.b, e.h, e.i, e.visible[j]),
                   2 * own_[j] + arithmetic_.sum(mask_terms_) * size,
                   error + row_.of_sum(mask_terms_) * size + flushed);
    }
}

// dslope_h = -sum delta_ij dX_ij with the distance delta, dS where the cap comes before the bias.
// Each term is of_sum's of the two factors and their product; a distance is exact, or one rounding
// (the 5 of of_sum), and a product may underflow. The sum runs over rows, keys and sequences of a
// head.
void GradientBook::add_slope(const GradientEntry& e) {
    const bool late = call_.dialect.softcap == SoftcapPlace::after_bias;
    const double terms = static_cast<double>(p_.batch * p_.len_q * p_.len_kv);
    const std::size_t h = static_cast<std::size_t>(e.h);
    for (std::size_t j = 0; j < e.visible.size(); ++j) {
        const double size = late ? row_.size_dx()[j] : row_.size_ds()[j];
        const double error = late ? row_.of_dx()[j] : row_.of_ds()[j];
        const double own = 2 * own_[j] + (arithmetic_.sum(terms) + 2 * arithmetic_.unit) * size;
        double bound = e.distance[j] * (error + row_.of_sum(terms) * size) + 2 * model_.oma;
        if (!(bound >= 0)) bound = infinite;  // no distance, and nothing is promised of dS
        d_slopes.add(h, e.distance[j] * own, bound);
    }
}

/// What the errors of the row's D and LSE cost dQ: the sums of backward_bound.hpp, from weights and
/// slopes that are exact to facts_accuracy, twice.
void GradientBook::add_common(const GradientEntry& e, std::size_t q_at) {
    const std::size_t d = static_cast<std::size_t>(p_.dim_qk);
    const double scale = std::abs(call_.scale);
    for (std::vector<double>* x : {&mean_, &slope_, &mean_size_, &slope_size_}) x->assign(d, 0.0);
    for (std::size_t j = 0; j < e.visible.size(); ++j) {
        const double* key = call_.key(e.b, e.h / call_.group, e.visible[j]);
        const double bend = e.back.slope.empty() ? 1 : e.back.slope[j];
        const double p = e.row.weight[j] * bend, apart = e.back.dp[j] - e.back.d;
        for (std::size_t c = 0; c < d; ++c) {
            mean_[c] += p * key[c];
            mean_size_[c] += p * std::abs(key[c]);
            slope_[c] += p * apart * key[c];
            slope_size_[c] += p * (e.back.dp_size[j] + e.back.d_size) * std::abs(key[c]);
        }
    }
    for (std::size_t c = 0; c < d; ++c) {
        const double mean = std::abs(mean_[c]) + 4 * bound::facts_accuracy * mean_size_[c];
        const double slope = std::abs(slope_[c]) + 4 * bound::facts_accuracy * slope_size_[c];
        double common = scale * (row_.of_d() * mean + row_.of_lse() * slope);
        if (!(common >= 0)) common = infinite;
        d_q.add(q_at + c, 0, common);
    }
}

void GradientBook::disclaim(std::int64_t b, std::int64_t h, std::int64_t i,
                            std::span<const std::int64_t> keys) {
    const std::size_t d = static_cast<std::size_t>(p_.dim_qk);
    const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
    d_q.disclaim(static_cast<std::size_t>((b * p_.heads_q + h) * p_.len_q + i) * d, d);
    for (const std::int64_t key : keys) {
        const std::size_t row =
            static_cast<std::size_t>((b * p_.heads_kv + h / call_.group) * p_.len_kv + key);
        d_k.disclaim(row * d, d);
        d_v.disclaim(row * dim_v, dim_v);
        if (!d_mask.own.empty()) d_mask.disclaim(call_.mask_index(b, h, i, key), 1);
    }
    if (p_.sink) d_sinks.disclaim(static_cast<std::size_t>(h), 1);
    if (p_.alibi) d_slopes.disclaim(static_cast<std::size_t>(h), 1);
}

void GradientBook::round_heads() {
    const double heads = static_cast<double>(call_.group);
    for (GradientErrors* sums : {&d_k, &d_v})
        sums->round_heads(model_.ugh, heads * model_.omgh, model_.heads_max);
}

double GradientBook::own_once() const {
    return 8 * static_cast<double>(p_.len_q * p_.heads_q + p_.len_kv) * (1 + model_.scale) *
           arithmetic_.underflow;
}

double GradientBook::bound_once() const {
    return row_.absolute(static_cast<double>(p_.batch * p_.heads_q * p_.len_q + p_.len_kv),
                         model_.scale);
}

}  // namespace attest::oracle
