#include "reference/oracle/row_runner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/oracle/column_loops.hpp"
#include "reference/oracle/row_elements.hpp"

namespace attest::oracle {

namespace {

/// x 2^-exponent, not rounded down: what underflows is made up for.
double unscale_up(double x, std::int64_t exponent) {
    if (exponent == 0) return x;
    return std::ldexp(x, static_cast<int>(-exponent)) + std::numeric_limits<double>::denorm_min();
}

double unscale(double x, std::int64_t exponent) {
    return exponent == 0 ? x : std::ldexp(x, static_cast<int>(-exponent));
}

}  // namespace

RowRunner::RowRunner(const Prepared& call, const Prepared& clean, const bound::KernelModel& model,
                     std::unique_ptr<RowArithmetic> arithmetic)
    : call_(call),
      clean_(clean),
      p_(call.problem),
      model_(model),
      arithmetic_(std::move(arithmetic)),
      error_(arithmetic_->error()),
      work_(block_rows, Work(model)),
      queries_(block_rows),
      values_(block_rows) {}

RowRunner::Place RowRunner::place(std::int64_t flat) const {
    const std::int64_t bh = flat / p_.len_q;
    return {bh / p_.heads_q, bh % p_.heads_q, flat % p_.len_q};
}

double RowRunner::row(std::int64_t flat, bound::Expected& out) {
    double worst = 0;
    const RowSlot at{flat, flat};
    block({&at, 1}, out, &worst);
    return worst;
}

void RowRunner::rows(std::span<const RowSlot> places, bound::Expected& out,
                     std::vector<double>& worst) {
    worst.assign(places.size(), 0.0);
    // Rows [group len_q head, group len_q (head + 1)) share a head of keys.
    const std::int64_t each = call_.group * p_.len_q;
    for (std::size_t first = 0, last = 0; first < places.size(); first = last) {
        const std::int64_t begin = places[first].flat / each * each;
        while (last < places.size() && last - first < block_rows && places[last].flat >= begin &&
               places[last].flat < begin + each)
            ++last;
        block(places.subspan(first, last - first), out, worst.data() + first);
    }
}

/// Rows that share a head of keys, at most block_rows.
void RowRunner::block(std::span<const RowSlot> places, bound::Expected& out, double* worst) {
    std::size_t live = 0;
    std::size_t from[block_rows];
    values_.front().score.clear();
    for (std::size_t n = 0; n < places.size(); ++n) {
        queries_[live] = {};
        if (open(places[n], work_[live], queries_[live], out)) from[live++] = n;
    }
    if (live == 0) return;
    load(queries_.front().b, queries_.front().h / call_.group);
    arithmetic_->compute(std::span(queries_).first(live), std::span(values_).first(live));
    columns_.resize(live);
    for (std::size_t row = 0; row < live; ++row) {
        Work& work = work_[row];
        weigh(queries_[row], values_[row], work);
        work.spread.resize(static_cast<std::size_t>(call_.dim_v));
        work.size.resize(work.spread.size());
        columns_[row] = {.visible = work.visible,
                         .bound = &work.bound,
                         .centre = values_[row].output.data(),
                         .spread = work.spread.data(),
                         .size = work.size.data()};
    }
    head_.sums(columns_);
    for (std::size_t row = 0; row < live; ++row)
        worst[from[row]] = finish(values_[row], work_[row], out);
}

/// Looks at what the row sees. False where that already says what is expected of it, which then is
/// written; else `query` is what to compute.
bool RowRunner::open(const RowSlot& at, Work& work, RowQuery& query, bound::Expected& out) const {
    const auto [b, h, i] = place(at.flat);
    bound::ExpectedElement* o = out.output.data() + at.slot * call_.dim_v;
    bound::ExpectedElement& lse = out.lse[static_cast<std::size_t>(at.slot)];
    work.slot = at.slot;
    visible_keys(call_, b, h, i, work.visible);
    const bool empty = work.visible.empty();
    out.row_empty[static_cast<std::size_t>(at.slot)] = empty ? 1 : 0;
    RowClaims& claims = work.claims;
    claims = {};
    if (call_.any_nonfinite) claims = screen(call_, b, h, i, work.visible);
    if (claims.row != Claim::value) {
        std::fill(o, o + call_.dim_v, claimed(claims.row));
        lse = claimed(claims.row);
        return false;
    }
    query.b = b;
    query.h = h;
    query.i = i;
    query.range = keys_of(p_, call_.dialect, b, i);
    const bool sink =
        p_.sink && std::isfinite(call_.sinks[static_cast<std::size_t>(h)]) && !claims.drop_sink;
    if (!query.range.is_query || (empty && !sink)) {
        put_empty(call_, model_, query.range, {b, h / call_.group}, o, lse);
        return false;
    }
    work.mask.clear();
    if (p_.mask.tensor.kind == MaskKind::additive)
        for (const std::int64_t j : work.visible) work.mask.push_back(call_.mask_at(b, h, i, j));
    work.distance.clear();
    if (p_.alibi) {
        for (const std::int64_t j : work.visible)
            work.distance.push_back(
                std::abs(static_cast<double>(query.range.position - (j - query.range.key_base))));
        query.slope = call_.slopes[static_cast<std::size_t>(h)];
    }
    query.visible = work.visible;
    query.mask = work.mask;
    query.distance = work.distance;
    query.sink = sink ? &call_.sinks[static_cast<std::size_t>(h)] : nullptr;
    return true;
}

void RowRunner::load(std::int64_t b, std::int64_t h_kv) {
    if (b == loaded_b_ && h_kv == loaded_h_) return;
    loaded_b_ = b;
    loaded_h_ = h_kv;
    value_exponent_ = clean_.value_exponent.empty()
                          ? 0
                          : clean_.value_exponent[static_cast<std::size_t>(b * p_.heads_kv + h_kv)];
    head_values_ = clean_.value(b, h_kv, 0);
    const bool single = model_.weight_floor >= 0x1p-126;  // see HeadColumns::sums
    head_.load(head_values_, p_.len_kv, call_.dim_v, single);
}

void RowRunner::weigh(const RowQuery& query, const RowValues& values, Work& work) const {
    const std::size_t entries = values.score.size();
    const bool sink = query.sink != nullptr;
    std::vector<double>& bias = work.bias;
    bias.clear();
    if (!work.mask.empty() || !work.distance.empty() || sink) {
        bias.assign(entries, 0.0);
        for (std::size_t j = 0; j < work.mask.size(); ++j) bias[j] += std::abs(work.mask[j]);
        for (std::size_t j = 0; j < work.distance.size(); ++j)
            bias[j] += std::abs(query.slope) * work.distance[j];
        if (sink) bias[entries - 1] = std::abs(*query.sink);
    }
    bound::RowFacts& facts = work.facts;
    facts.score = values.score;
    facts.weight = values.weight;
    facts.magnitude = values.magnitude;
    facts.bias = bias;
    facts.turn = values.turn;
    facts.max = values.max;
    facts.lse = values.lse;
    facts.sink = sink;
    facts.q_max = values.q_max;
    facts.k_max = values.k_max;
    work.bound.weigh(facts);
    double angle_max = 0;
    if (p_.rope.style != RopeStyle::none)
        angle_max = static_cast<double>(p_.rope.offset) + static_cast<double>(p_.len_q + p_.len_kv);
    work.own =
        own_error(error_, model_, facts.outline(), work.bound.maxima(), head_.largest(), angle_max);
}

/// Writes the row. What it returns, see row().
double RowRunner::finish(const RowValues& values, Work& work, bound::Expected& out) const {
    const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
    bound::ExpectedElement* o = out.output.data() + work.slot * call_.dim_v;
    bound::ExpectedElement& lse = out.lse[static_cast<std::size_t>(work.slot)];
    double worst = put_outputs(values, work, o);
    if (work.visible.empty()) {
        std::fill(o, o + dim_v, bound::ExpectedElement{});
        worst = 0;
    }
    const bound::ExpectedElement of_lse = lse_element(call_.dialect.lse_base, values.lse,
                                                      values.lse_two, work.bound, work.own, error_);
    worst = std::max(worst, put_elements(&of_lse.value, &of_lse.error, &of_lse.bound, 1, &lse));
    for (std::size_t c = 0; c < work.claims.column.size(); ++c)
        if (work.claims.column[c] != Claim::value) o[c] = claimed(work.claims.column[c]);
    return worst;
}

// No weight is negative, so the truth lies in the hull of the visible values whatever the scores
// are, and this arithmetic's mean leaves it by the errors of its sums and of their quotient alone.
// Where every score is hidden by -1e30 the weights are known to nothing, and values of 0 are 0.
void RowRunner::keep_in_hull(const RowValues& values, Work& work) const {
    const OwnError& own = work.own;
    for (std::size_t c = 0; c < work.error.size(); ++c) {
        const double low = work.facts.sink ? std::min(0.0, work.low[c]) : work.low[c];
        const double high = work.facts.sink ? std::max(0.0, work.high[c]) : work.high[c];
        const double largest = std::max(std::abs(low), std::abs(high));
        // (1 + g)/(1 - g) - 1 <= 2.1 g below 1/50; the quotient and its rounding to a double.
        const double beyond = (2.1 * own.sum + 3 * own.unit) * largest +
                              own.absolute * head_.total()[c] + own.once +
                              0x1p-52 * std::abs(values.output[c]);
        if (std::isfinite(work.error[c]))
            work.error[c] = std::min(work.error[c], high - low + beyond);
    }
}

double RowRunner::put_outputs(const RowValues& values, Work& work,
                              bound::ExpectedElement* o) const {
    const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
    const double* total = head_.total().data();
    work.error.resize(dim_v);
    work.limit.resize(dim_v);
    // plain_j >= plain_share p_j, and the weights of the keys add up to at most 1.
    output_errors(work.own,
                  {.value = values.output.data(),
                   .size = work.size.data(),
                   .total = total,
                   .share = 1 / work.bound.plain_share(),
                   .value_max = head_.largest()},
                  dim_v, work.error.data());
    if (work.facts.sink) {
        const double of_sink = work.bound.centred()[work.visible.size()];
        for (std::size_t c = 0; c < dim_v; ++c)
            work.spread[c] += of_sink * std::abs(values.output[c]);
    }
    bound::ColumnArrays sums{work.spread.data(), work.size.data(), total};
    if (work.bound.wants_hull()) {
        work.low.resize(dim_v);
        work.high.resize(dim_v);
        find_hull(head_values_, work.visible, work.low, work.high);
        sums.low = work.low.data();
        sums.high = work.high.data();
        keep_in_hull(values, work);
    }
    const double* exact = values.output.data();
    if (value_exponent_ != 0) exact = unscaled(values, work, sums);
    work.bound.outputs(dim_v, exact, sums, work.limit.data());
    return put_elements(exact, work.error.data(), work.limit.data(), dim_v, o);
}

/// Values and sums as they are without Prepared::value_exponent.
const double* RowRunner::unscaled(const RowValues& values, Work& work,
                                  bound::ColumnArrays& sums) const {
    work.value = values.output;
    for (double& x : work.value) x = unscale(x, value_exponent_);
    work.total = head_.total();
    for (std::vector<double>* x : {&work.spread, &work.size, &work.total, &work.error})
        for (double& each : *x) each = unscale_up(each, value_exponent_);
    sums.value_total = work.total.data();
    if (sums.low != nullptr)
        for (std::vector<double>* x : {&work.low, &work.high})
            for (double& each : *x) each = unscale(each, value_exponent_);
    return work.value.data();
}

}  // namespace attest::oracle
