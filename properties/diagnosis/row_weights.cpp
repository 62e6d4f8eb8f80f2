#include "properties/diagnosis/row_weights.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>
#include <utility>

#include "properties/diagnosis/evidence.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rows_of.hpp"

namespace attest::diagnosis {

namespace {

// exp of more than this has left what a kernel in f32 can hold.
constexpr double most_change = 80;

/// What becomes of the sum of a row: the logarithm of that of the changed weights, and of the one
/// they are divided by, by what it should be.
struct SumChange {
    double own = infinite, divided_by = infinite;
    SumChange(const oracle::RowDetail& row, const std::optional<WeightChange>& change) {
        if (!change) return;
        own = log_sum_change(row, change->numerator);
        divided_by = change->denominator.value_or(own);
    }
    bool known() const { return std::abs(own) < most_change && std::abs(divided_by) < most_change; }
};

std::optional<WeightChange> changed_row(const Specification& s, const oracle::RowDetail& row,
                                        std::size_t n, const WeightChangeOf& change) {
    if (!std::isfinite(row.max)) return WeightChange{};
    const Problem& p = s.problem;
    const auto flat = static_cast<std::int64_t>(n);
    return change(s, row, {span_of(s, flat / p.len_q / p.heads_q, flat % p.len_q), n});
}

bool changes_any(const oracle::RowDetail& row, const std::optional<WeightChange>& change) {
    if (!change) return false;
    if (change->denominator.value_or(0) != 0) return true;
    for (std::size_t j = 0; j < change->numerator.size(); ++j)
        if (row.shares[j] > 0 && change->numerator[j] != 0) return true;
    return false;
}

/// Where weights are changed by what scores were before the cap, they are not known.
bool follows(const Specification& s, const bound::Expected& truth, std::size_t rows) {
    const bool capped = s.problem.softcap > 0 && s.dialect.softcap == SoftcapPlace::after_bias;
    return !capped && truth.lse.size() == rows;
}

/// What the rows of a call become.
struct RowsChanged {
    std::shared_ptr<const std::vector<oracle::RowDetail>> details;
    std::vector<std::optional<WeightChange>> rows;
    bool any = false;

    RowsChanged(const Specification& s, const WeightChangeOf& change) : details(rows_of(s)) {
        for (std::size_t n = 0; n < details->size(); ++n) {
            rows.push_back(changed_row(s, (*details)[n], n, change));
            any = any || changes_any((*details)[n], rows.back());
        }
    }

    SumChange sum(std::size_t n) const { return {(*details)[n], rows[n]}; }
};

/// None where nothing is changed, or nothing can be said.
std::optional<RowsChanged> changed_rows(const Specification& s, const bound::Expected& truth,
                                        const WeightChangeOf& change) {
    if (!follows(s, truth, rows_of(s)->size())) return {};
    RowsChanged changed(s, change);
    if (!changed.any) return {};
    return changed;
}

double lse_unit(const Specification& s) {
    return s.dialect.lse_base == LseBase::two ? std::numbers::ln2 : 1.0;
}

bound::ExpectedElement log_sum(const Specification& s, const SumChange& sum,
                               const bound::ExpectedElement& truth) {
    if (!sum.known()) return {0, 0, infinite};
    bound::ExpectedElement changed = truth;
    changed.value += sum.divided_by / lse_unit(s);
    return changed;
}

/// Row by row, those that are wrong first: most changes are refuted by the first of them.
bool refuted(const Specification& s, const WeightChangeOf& change, const bound::Expected& truth,
             const Tensor& lse) {
    const auto details = rows_of(s);
    if (!follows(s, truth, details->size())) return false;
    const auto disagrees = [&](std::size_t n, const bound::ExpectedElement& expected) {
        return (!std::isfinite(expected.value) || std::isfinite(expected.bound)) &&
               bound::judge(lse.get(static_cast<std::int64_t>(n)), expected,
                            lse_format(s.problem)) == bound::Agreement::disagrees;
    };
    std::vector<std::size_t> rows(details->size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    std::stable_partition(rows.begin(), rows.end(),
                          [&](std::size_t n) { return disagrees(n, truth.lse[n]); });
    bool any_changed = false, any_disagrees = false;
    for (const std::size_t n : rows) {
        const auto own = changed_row(s, (*details)[n], n, change);
        any_changed = any_changed || changes_any((*details)[n], own);
        any_disagrees =
            any_disagrees ||
            disagrees(n, truth.row_empty[n] != 0 ? truth.lse[n]
                                                 : log_sum(s, {(*details)[n], own}, truth.lse[n]));
        if (any_changed && any_disagrees) return true;
    }
    return false;
}

// The output is that of the changed scores times exp(their log-sum - that of the denominator). A
// kernel's own sum differs from the true one by what its log-sum-exp may.
bound::Expected answer(const Specification& s, const RowsChanged& changed,
                       const bound::Expected& truth) {
    const Specification biased = with_bias(s, [&](const MaskPlace& p) {
        const std::int64_t flat =
            (p.batch * s.problem.heads_q + p.head) * s.problem.len_q + p.query;
        const auto& row = changed.rows[static_cast<std::size_t>(flat)];
        return row && !row->numerator.empty() ? row->numerator[static_cast<std::size_t>(p.key)]
                                              : 0.0;
    });
    bound::Expected out =
        oracle::attend(biased.problem, biased.dialect, biased.numerics, biased.inputs);
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t n = 0; n < changed.rows.size(); ++n) {
        if (truth.row_empty[n] != 0) continue;
        const SumChange sum = changed.sum(n);
        const double factor = std::exp(sum.own - sum.divided_by);
        const double slack = lse_unit(s) * truth.lse[n].bound;
        for (std::size_t k = n * dim; k < (n + 1) * dim; ++k) {
            bound::ExpectedElement& o = out.output[k];
            if (!sum.known()) {
                o = {0, 0, infinite};
            } else if (std::isfinite(o.value)) {  // else whatever the weights
                const double extra = changed.rows[n]->denominator ? std::abs(o.value) * slack : 0.0;
                o = {o.value * factor, o.error * factor, (o.bound + extra) * factor};
            }
        }
    }
    out.lse = truth.lse;
    for (std::size_t n = 0; n < out.lse.size(); ++n)
        if (truth.row_empty[n] == 0) out.lse[n] = log_sum(s, changed.sum(n), truth.lse[n]);
    return out;
}

}  // namespace

SegmentExtent segment_of(const Problem& p, std::int64_t b, std::int64_t i) {
    const Mask& mask = p.mask;
    if (mask.documents_q.empty())
        return {{0, length_of(mask.lens_q, p.len_q, b)}, {0, length_of(mask.lens_kv, p.len_kv, b)}};
    std::int64_t query = 0, key = 0;
    for (std::size_t n = 0; n < mask.documents_q.size(); ++n) {
        const SegmentExtent own{{query, query + mask.documents_q[n]},
                                {key, key + mask.documents_kv[n]}};
        if (i < own.queries.end) return own;
        query = own.queries.end, key = own.keys.end;
    }
    return {{query, query}, {key, key}};
}

KeyExtent span_of(const Specification& s, std::int64_t b, std::int64_t i) {
    return segment_of(s.problem, b, i).keys;
}

std::vector<KeyExtent> parts_of(KeyExtent span, std::int64_t each) {
    std::vector<KeyExtent> list;
    for (std::int64_t from = span.begin; from < span.end; from += each)
        list.push_back({from, std::min(from + each, span.end)});
    return list;
}

std::vector<KeyExtent> split_extents(const Problem& problem, KeyExtent span) {
    const std::int64_t keys = span.end - span.begin;
    const std::int64_t n =
        std::clamp<std::int64_t>(problem.splits, 1, std::max<std::int64_t>(1, keys));
    return parts_of(span, std::max<std::int64_t>(1, (keys + n - 1) / n));
}

std::vector<std::vector<KeyExtent>> splits_of_tiles(const Problem& problem, KeyExtent span,
                                                    std::int64_t tile) {
    std::vector<std::vector<KeyExtent>> ways{split_extents(problem, span)};
    if (problem.splits < 2 || span.end <= span.begin) return ways;
    const std::int64_t tiles = (span.end - span.begin + tile - 1) / tile;
    ways.push_back(parts_of(span, tile * ((tiles + problem.splits - 1) / problem.splits)));
    return ways;
}

std::optional<double> lse_between(const oracle::RowDetail& row, KeyExtent keys) {
    double most = -infinite, sum = 0;
    for (std::int64_t j = keys.begin; j < keys.end; ++j)
        most = std::max(most, row.scores[static_cast<std::size_t>(j)]);
    if (!std::isfinite(most)) return std::nullopt;
    for (std::int64_t j = keys.begin; j < keys.end; ++j)
        sum += std::exp(row.scores[static_cast<std::size_t>(j)] - most);
    return most + std::log(sum);
}

// log(sum_j P_j exp(c_j) + P_sink): the weights and the sink's add up to 1.
double log_sum_change(const oracle::RowDetail& row, const std::vector<double>& change) {
    double sum = 1;
    for (std::size_t j = 0; j < change.size(); ++j)
        if (row.shares[j] > 0) sum += row.shares[j] * std::expm1(change[j]);
    return std::log(sum);
}

Deviation weight_deviation(std::string id, std::string says, WeightChangeOf change) {
    Deviation d{.id = std::move(id), .says = std::move(says)};
    d.formula = [change](const Specification& s,
                         const bound::Expected& truth) -> std::optional<bound::Expected> {
        const auto changed = changed_rows(s, truth, change);
        if (!changed) return std::nullopt;
        return answer(s, *changed, truth);
    };
    d.lse_refutes = [change](const Specification& s, const bound::Expected& truth,
                             const Tensor& lse) { return refuted(s, change, truth, lse); };
    return d;
}

}  // namespace attest::diagnosis
