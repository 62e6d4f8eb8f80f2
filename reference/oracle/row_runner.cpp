#include "reference/oracle/row_runner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/oracle/lanes.hpp"

namespace attest {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// x 2^-exponent, not rounded down: what underflows is made up for.
double unscale_up(double x, std::int64_t exponent) {
    if (exponent == 0) return x;
    return std::ldexp(x, static_cast<int>(-exponent)) + std::numeric_limits<double>::denorm_min();
}

double unscale(double x, std::int64_t exponent) {
    return exponent == 0 ? x : std::ldexp(x, static_cast<int>(-exponent));
}

}  // namespace

RowRunner::RowRunner(const Prepared& call, const Prepared& clean, const KernelModel& model,
                     std::unique_ptr<RowArithmetic> arithmetic)
    : call_(call),
      clean_(clean),
      p_(call.problem),
      model_(model),
      bound_(model),
      arithmetic_(std::move(arithmetic)),
      error_(arithmetic_->error()),
      stride_(padded(call.dim_v)) {}

double RowRunner::row(std::int64_t flat, Expected& out) {
    const std::int64_t i = flat % p_.len_q, bh = flat / p_.len_q;
    const std::int64_t b = bh / p_.heads_q, h = bh % p_.heads_q;
    ExpectedElement* o = out.output.data() + flat * call_.dim_v;
    ExpectedElement& lse = out.lse[static_cast<std::size_t>(flat)];
    values_.score.clear();
    visible_keys(call_, b, h, i, visible_);
    const bool empty = visible_.empty();
    out.row_empty[static_cast<std::size_t>(flat)] = empty ? 1 : 0;
    RowClaims claims;
    if (call_.any_nonfinite) claims = screen(call_, b, h, i, visible_);
    tainted_ = claims.seen;
    if (claims.row != Claim::value) {
        std::fill(o, o + call_.dim_v, claimed(claims.row));
        lse = claimed(claims.row);
        return 0;
    }
    const KeyRange range = keys_of(p_, call_.dialect, b, i);
    const bool sink =
        p_.sink && std::isfinite(call_.sinks[static_cast<std::size_t>(h)]) && !claims.drop_sink;
    if (!range.is_query || (empty && !sink)) {
        put_empty(range, o, lse);
        return 0;
    }
    load(b, h / call_.group);
    compute(b, h, i, range, sink);
    put_outputs(o);
    if (empty) std::fill(o, o + call_.dim_v, ExpectedElement{});
    put_lse(lse);
    for (std::size_t c = 0; c < claims.column.size(); ++c)
        if (claims.column[c] != Claim::value) o[c] = claimed(claims.column[c]);

    double worst = 0;
    const auto note = [&](const ExpectedElement& e) {
        if (!(e.bound < infinite) || (e.error == 0 && e.bound == 0)) return;
        const double beyond = std::max(0.0, e.error - double_rounding(e.value));
        worst = std::max(worst, e.error < infinite ? beyond / e.bound : infinite);
    };
    std::for_each(o, o + call_.dim_v, note);
    note(lse);
    return worst;
}

void RowRunner::put_empty(const KeyRange& range, ExpectedElement* o, ExpectedElement& lse) const {
    ExpectedElement zero;
    lse = {.value = -infinite, .error = 0, .bound = 0};
    if (range.is_query && !p_.sink && call_.dialect.empty_row == EmptyRow::nan) {
        zero = claimed(Claim::nan);
        lse = claimed(Claim::nothing);
    }
    // refuse; or a sink that is no number, and nothing else.
    if (range.is_query && (p_.sink || call_.dialect.empty_row == EmptyRow::refuse))
        zero = lse = claimed(Claim::nothing);
    std::fill(o, o + call_.dim_v, zero);
}

void RowRunner::load(std::int64_t b, std::int64_t h_kv) {
    if (b == loaded_b_ && h_kv == loaded_h_) return;
    loaded_b_ = b;
    loaded_h_ = h_kv;
    value_exponent_ = clean_.value_exponent.empty()
                          ? 0
                          : clean_.value_exponent[static_cast<std::size_t>(b * p_.heads_kv + h_kv)];
    const double* from = clean_.value(b, h_kv, 0);
    head_values_.assign(static_cast<std::size_t>(p_.len_kv * stride_), 0.0);
    value_total_.assign(static_cast<std::size_t>(call_.dim_v), 0.0);
    value_max_ = 0;
    for (std::int64_t j = 0; j < p_.len_kv; ++j)
        for (std::int64_t c = 0; c < call_.dim_v; ++c) {
            const double x = from[j * call_.dim_v + c];
            head_values_[static_cast<std::size_t>(j * stride_ + c)] = x;
            value_total_[static_cast<std::size_t>(c)] += std::abs(x);
            value_max_ = std::max(value_max_, std::abs(x));
        }
}

void RowRunner::compute(std::int64_t b, std::int64_t h, std::int64_t i, const KeyRange& range,
                        bool sink) {
    RowQuery query;
    query.b = b;
    query.h = h;
    query.i = i;
    query.range = range;
    query.visible = visible_;
    mask_.clear();
    if (p_.mask.tensor.kind == MaskKind::additive)
        for (const std::int64_t j : visible_) mask_.push_back(call_.mask_at(b, h, i, j));
    query.mask = mask_;
    distance_.clear();
    if (p_.alibi) {
        for (const std::int64_t j : visible_)
            distance_.push_back(
                std::abs(static_cast<double>(range.position - (j - range.key_base))));
        query.slope = call_.slopes[static_cast<std::size_t>(h)];
    }
    query.distance = distance_;
    query.sink = sink ? &call_.sinks[static_cast<std::size_t>(h)] : nullptr;
    arithmetic_->compute(query, values_);

    const std::size_t entries = values_.score.size();
    bias_.clear();
    if (!mask_.empty() || !distance_.empty() || sink) {
        bias_.assign(entries, 0.0);
        for (std::size_t j = 0; j < mask_.size(); ++j) bias_[j] += std::abs(mask_[j]);
        for (std::size_t j = 0; j < distance_.size(); ++j)
            bias_[j] += std::abs(query.slope) * distance_[j];
        if (sink) bias_[entries - 1] = std::abs(*query.sink);
    }
    facts_.score = values_.score;
    facts_.weight = values_.weight;
    facts_.magnitude = values_.magnitude;
    facts_.bias = bias_;
    facts_.turn = values_.turn;
    facts_.max = values_.max;
    facts_.lse = values_.lse;
    facts_.sink = sink;
    facts_.q_max = values_.q_max;
    facts_.k_max = values_.k_max;
    bound_.weigh(facts_);
    double angle_max = 0;
    if (p_.rope.style != RopeStyle::none)
        angle_max = static_cast<double>(p_.rope.offset) + static_cast<double>(p_.len_q + p_.len_kv);
    own_ = own_error(error_, model_, facts_, value_max_, angle_max);
}

void RowRunner::put_outputs(ExpectedElement* o) {
    const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
    const std::size_t stride = static_cast<std::size_t>(stride_);
    centre_.assign(stride, 0.0);
    std::copy(values_.output.begin(), values_.output.end(), centre_.begin());
    for (std::vector<double>* sums : {&spread_, &plain_, &mass_, &low_, &high_})
        sums->resize(stride);
    const ColumnTask task{.values = head_values_.data(),
                          .stride = stride_,
                          .visible = visible_,
                          .centred = bound_.centred(),
                          .plain = bound_.plain(),
                          .weight = values_.weight,
                          .centre = centre_.data(),
                          .hull = bound_.wants_hull()};
    column_sums(task, {.spread = spread_.data(),
                       .plain = plain_.data(),
                       .mass = mass_.data(),
                       .low = low_.data(),
                       .high = high_.data()});
    const double of_sink = facts_.sink ? bound_.centred()[visible_.size()] : 0;
    for (std::size_t c = 0; c < dim_v; ++c) {
        const double spread = spread_[c] + of_sink * std::abs(centre_[c]);
        const double own = output_error(own_, centre_[c], mass_[c], value_total_[c]);
        o[c].value = unscale(centre_[c], value_exponent_);
        o[c].error = unscale_up(own, value_exponent_);
        const ColumnSums sums{.spread = unscale_up(spread, value_exponent_),
                              .plain = unscale_up(plain_[c], value_exponent_),
                              .low = unscale(low_[c], value_exponent_),
                              .high = unscale(high_[c], value_exponent_),
                              .value_total = unscale_up(value_total_[c], value_exponent_)};
        o[c].bound = bound_.output(o[c].value, sums).value();
    }
}

void RowRunner::put_lse(ExpectedElement& lse) const {
    if (call_.dialect.lse_base == LseBase::e) {
        lse.value = values_.lse;
        lse.error = own_.lse + double_rounding(lse.value);
        lse.bound = bound_.lse().value();
        return;
    }
    constexpr double log2e = 1.4426950408889634;
    lse.value = values_.lse_two;
    lse.error = 1.01 * log2e * own_.lse + 2 * (own_.unit + error_.function) * std::abs(lse.value) +
                double_rounding(lse.value);
    lse.bound = bound_.lse_base_two().value();
}

}  // namespace attest
