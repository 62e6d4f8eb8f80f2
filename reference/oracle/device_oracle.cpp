#include "reference/oracle/device_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>

#include "reference/oracle/column_loops.hpp"
#include "reference/oracle/head_columns.hpp"
#include "reference/oracle/prepared.hpp"
#include "reference/oracle/real.hpp"
#include "reference/oracle/row_elements.hpp"
#include "reference/oracle/row_runner.hpp"

namespace attest::oracle {

namespace {

using Wide = Arithmetics<DoubleDouble>;

bool computed_there(const Prepared& call) {
    return call.problem.rope.style == RopeStyle::none &&
           call.problem.mask.tensor.kind == MaskKind::none && !call.any_nonfinite &&
           !has_small_values(call);
}

double largest_of(const double* x, std::int64_t n) {
    double most = 0;
    for (std::int64_t c = 0; c < n; ++c) most = std::max(most, std::abs(x[c]));
    return most;
}

/// One call's rows, a head at a time.
class DeviceRun {
public:
    DeviceRun(DeviceRows& device, const Prepared& call, const bound::KernelModel& model,
              bound::Expected& out)
        : device_(device), call_(call), p_(call.problem), model_(model), out_(out) {}

    std::vector<RowSlot> sink_alone;  ///< rows without a visible key: not the device's

    /// Rows of one sequence and head of keys.
    void head(std::span<const RowSlot> slots) {
        const std::int64_t bh = slots.front().flat / p_.len_q;
        b_ = bh / p_.heads_q;
        h_kv_ = bh % p_.heads_q / call_.group;
        load();
        const auto most = static_cast<std::size_t>(device_.rows_max());
        for (std::size_t first = 0; first < slots.size(); first += most)
            batch(slots.subspan(first, std::min(most, slots.size() - first)));
    }

private:
    struct Pending {
        RowSlot at;
        bound::RowOutline outline;
        bound::RowMaxima maxima;
        double lse_two = 0;
    };

    void load();
    void batch(std::span<const RowSlot> slots);
    void ask(const RowSlot& at);
    void begin(Pending& row, std::size_t n);
    void finish(Pending& row, std::size_t n);
    void outputs(std::size_t n, const OwnError& own, bound::ExpectedElement* o);

    DeviceRows& device_;
    const Prepared& call_;
    const Problem& p_;
    const bound::KernelModel& model_;
    bound::Expected& out_;

    std::int64_t b_ = 0, h_kv_ = 0;
    HeadColumns columns_;
    double key_max_ = 0;
    std::vector<double> transposed_;
    std::vector<Pending> pending_;
    std::vector<bound::RowBound> bounds_;
    std::vector<DeviceRow> rows_;
    std::vector<DeviceRowSums> sums_;
    std::vector<bound::EntryRule> rules_;
    std::vector<bound::EntryTotals> totals_;
    std::vector<double> queries_, output_, spread_, size_, error_, limit_, low_, high_;
};

void DeviceRun::load() {
    const double* keys = call_.key(b_, h_kv_, 0);
    const double* values = call_.value(b_, h_kv_, 0);
    const std::int64_t d = p_.dim_qk, n = p_.len_kv;
    transposed_.resize(static_cast<std::size_t>(d * n));
    for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t c = 0; c < d; ++c)
            transposed_[static_cast<std::size_t>(c * n + j)] = keys[j * d + c];
    key_max_ = largest_of(keys, n * d);
    columns_.load(values, n, call_.dim_v, false);
    device_.load({.len_kv = n,
                  .dim_qk = d,
                  .dim_v = call_.dim_v,
                  .keys = transposed_.data(),
                  .values = values});
}

/// Puts a row where it belongs: written already, asked of the device, or left to the CPU.
void DeviceRun::ask(const RowSlot& at) {
    const std::int64_t h = at.flat / p_.len_q % p_.heads_q, i = at.flat % p_.len_q;
    const KeyRange range = keys_of(p_, call_.dialect, b_, i);
    const bool empty = range.first >= range.last;
    out_.row_empty[static_cast<std::size_t>(at.slot)] = empty ? 1 : 0;
    if (!range.is_query || (empty && !p_.sink)) {
        put_empty(call_, model_, range, {b_, h / call_.group},
                  out_.output.data() + at.slot * call_.dim_v,
                  out_.lse[static_cast<std::size_t>(at.slot)]);
        return;
    }
    if (empty) {
        sink_alone.push_back(at);
        return;
    }
    const double* query = call_.query(b_, h, i);
    const double q_max = largest_of(query, p_.dim_qk);
    const bound::ScoreError error = bound::score_error(model_, q_max, key_max_);
    DeviceRow row{.first = range.first,
                  .last = range.last,
                  .error_dot = error.dot,
                  .error_bias = error.bias,
                  .error_absolute = error.absolute};
    if (p_.alibi) {
        row.origin = static_cast<double>(range.position + range.key_base);
        row.slope = call_.slopes[static_cast<std::size_t>(h)];
    }
    row.has_sink = p_.sink;
    if (p_.sink) row.sink = call_.sinks[static_cast<std::size_t>(h)];
    rows_.push_back(row);
    queries_.insert(queries_.end(), query, query + p_.dim_qk);
    Pending pending;
    pending.at = at;
    pending.outline.entries = static_cast<double>(range.last - range.first) + (p_.sink ? 1 : 0);
    pending.outline.q_max = q_max;
    pending.outline.k_max = key_max_;
    pending.outline.sink = p_.sink;
    pending_.push_back(pending);
}

void DeviceRun::batch(std::span<const RowSlot> slots) {
    rows_.clear();
    queries_.clear();
    pending_.clear();
    for (const RowSlot& at : slots) ask(at);
    if (rows_.empty()) return;
    const std::size_t count = rows_.size(), dim_v = static_cast<std::size_t>(call_.dim_v);
    bounds_.resize(count, bound::RowBound(model_));
    rules_.resize(count);
    sums_.resize(count);
    totals_.resize(count);
    output_.resize(count * dim_v);
    spread_.resize(output_.size());
    size_.resize(output_.size());
    device_.attend({.scale = call_.scale,
                    .softcap = p_.softcap,
                    .cap_after_bias = call_.dialect.softcap == SoftcapPlace::after_bias,
                    .alibi = p_.alibi,
                    .unit = model_.ua,
                    .count_rises = model_.tile > 0},
                   rows_, queries_, sums_, output_);
    for (std::size_t n = 0; n < count; ++n) begin(pending_[n], n);
    device_.weigh(rules_, totals_, spread_, size_);
    for (std::size_t n = 0; n < count; ++n) finish(pending_[n], n);
}

void DeviceRun::begin(Pending& row, std::size_t n) {
    const DeviceRowSums& sums = sums_[n];
    const DoubleDouble lse = sums.max + Wide::log(sums.sum);
    row.outline.max = Wide::nearest(sums.max);
    row.outline.lse = Wide::nearest(lse);
    row.lse_two = Wide::nearest(lse / Wide::log(DoubleDouble(2)));
    row.maxima = sums.maxima;
    if (row.outline.sink) {
        const double sink = rows_[n].sink, size = std::abs(sink);
        row.maxima.error =
            std::max(row.maxima.error, rows_[n].error_bias * size + rows_[n].error_absolute);
        row.maxima.bias = std::max(row.maxima.bias, size);
        row.maxima.score = std::max(row.maxima.score, size);
        row.maxima.score_least = std::min(row.maxima.score_least, sink);
    }
    rules_[n] = bounds_[n].begin(row.outline, row.maxima, sums.rises);
}

void DeviceRun::finish(Pending& row, std::size_t n) {
    bound::RowBound& bound = bounds_[n];
    bound::EntryTotals totals = totals_[n];
    const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v);
    // The device's sums of n terms are within 2^-22 of exact ones: bounds cover that by their
    // `evaluation`, and what bounds the row's mass is rounded up here.
    for (std::size_t x = n * dim_v; x < (n + 1) * dim_v; ++x) size_[x] *= 1 + 0x1p-20;
    if (row.outline.sink) {
        const double sink = rows_[n].sink;
        const double error = rows_[n].error_bias * std::abs(sink) + rows_[n].error_absolute;
        const bound::EntryCoefficients of_sink =
            bound::weigh_entry(bound::RowBound::of_sink(rules_[n], model_.ua), sink,
                               std::exp(sink - row.outline.lse), error, totals);
        for (std::size_t x = n * dim_v; x < (n + 1) * dim_v; ++x)
            spread_[x] += of_sink.centred * std::abs(output_[x]);
    }
    bound.end(totals);
    const OwnError own =
        own_error(Wide::error(), model_, row.outline, row.maxima, columns_.largest(), 0);
    outputs(n, own, out_.output.data() + row.at.slot * call_.dim_v);
    const bound::ExpectedElement lse = lse_element(call_.dialect.lse_base, row.outline.lse,
                                                   row.lse_two, bound, own, Wide::error());
    put_elements(&lse.value, &lse.error, &lse.bound, 1,
                 &out_.lse[static_cast<std::size_t>(row.at.slot)]);
}

void DeviceRun::outputs(std::size_t n, const OwnError& own, bound::ExpectedElement* o) {
    const std::size_t dim_v = static_cast<std::size_t>(call_.dim_v), at = n * dim_v;
    const double* total = columns_.total().data();
    error_.resize(dim_v);
    limit_.resize(dim_v);
    output_errors(own,
                  {.value = output_.data() + at,
                   .size = size_.data() + at,
                   .total = total,
                   .share = 1 / bounds_[n].plain_share(),
                   .value_max = columns_.largest()},
                  dim_v, error_.data());
    bound::ColumnArrays sums{spread_.data() + at, size_.data() + at, total};
    if (bounds_[n].wants_hull()) {  // rare: then the host looks
        std::vector<std::int64_t> visible(static_cast<std::size_t>(rows_[n].last - rows_[n].first));
        std::iota(visible.begin(), visible.end(), rows_[n].first);
        low_.resize(dim_v);
        high_.resize(dim_v);
        find_hull(call_.value(b_, h_kv_, 0), visible, low_, high_);
        sums.low = low_.data();
        sums.high = high_.data();
    }
    bounds_[n].outputs(dim_v, output_.data() + at, sums, limit_.data());
    put_elements(output_.data() + at, error_.data(), limit_.data(), dim_v, o);
}

/// Rows of the call, or of all of it, in order.
std::vector<RowSlot> slots_of(const Problem& p, const std::vector<std::int64_t>& rows) {
    std::vector<RowSlot> slots;
    if (rows.empty())
        for (std::int64_t n = 0; n < p.batch * p.heads_q * p.len_q; ++n) slots.push_back({n, n});
    for (const std::int64_t row : rows) slots.push_back({row, std::ssize(slots)});
    return slots;
}

}  // namespace

std::optional<bound::Expected> attend_on_device(DeviceRows& device, const Problem& problem,
                                                const Dialect& dialect, const Numerics& numerics,
                                                const TensorSet& inputs,
                                                const std::vector<std::int64_t>& rows) {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    const Prepared call = prepare(problem, dialect, inputs);
    if (!computed_there(call)) return std::nullopt;
    const std::vector<RowSlot> slots = slots_of(problem, rows);
    bound::Expected out;
    out.output_shape = {problem.batch, problem.heads_q, problem.len_q, call.dim_v};
    out.rows = rows;
    out.output.resize(slots.size() * static_cast<std::size_t>(call.dim_v));
    out.lse.resize(slots.size());
    out.row_empty.resize(slots.size());
    const bound::KernelModel model = model_of(call, numerics);
    DeviceRun run(device, call, model, out);
    const std::int64_t each = call.group * problem.len_q;  // rows that share a head of keys
    for (std::size_t first = 0, last = 0; first < slots.size(); first = last) {
        while (last < slots.size() && slots[last].flat / each == slots[first].flat / each) ++last;
        run.head(std::span(slots).subspan(first, last - first));
    }
    if (run.sink_alone.empty()) return out;
    std::vector<std::int64_t> flat;
    for (const RowSlot& at : run.sink_alone) flat.push_back(at.flat);
    const bound::Expected rest =
        attend_rows(problem, dialect, numerics, inputs, flat, Arithmetic::filtered);
    for (std::size_t n = 0; n < flat.size(); ++n) {
        const std::int64_t slot = run.sink_alone[n].slot;
        std::copy_n(rest.output.data() + static_cast<std::int64_t>(n) * call.dim_v, call.dim_v,
                    out.output.data() + slot * call.dim_v);
        out.lse[static_cast<std::size_t>(slot)] = rest.lse[n];
    }
    return out;
}

}  // namespace attest::oracle
