#include "properties/diagnosis/row_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rows_of.hpp"

namespace attest::diagnosis {

namespace {

// exp of more than this has left what a kernel in f32 can hold.
constexpr double most_change = 80;

/// What the rows of a call become.
struct RowsChanged {
    std::vector<std::optional<WeightChange>> rows;
    bool any = false;

    RowsChanged(const Specification& s, const WeightChangeOf& change,
                const std::vector<oracle::RowDetail>& details) {
        const Problem& p = s.problem;
        for (std::size_t n = 0; n < details.size(); ++n) {
            const auto flat = static_cast<std::int64_t>(n);
            const oracle::RowDetail& row = details[n];
            const KeyExtent span = span_of(s, flat / p.len_q / p.heads_q, flat % p.len_q);
            rows.push_back(std::isfinite(row.max) ? change(s, row, span) : WeightChange{});
            if (rows.back()) add(row, *rows.back());
        }
    }

private:
    void add(const oracle::RowDetail& row, const WeightChange& c) {
        any = any || c.denominator.value_or(0) != 0;
        for (std::size_t j = 0; j < c.numerator.size(); ++j)
            any = any || (row.weights[j] > 0 && c.numerator[j] != 0);
    }
};

// The output is that of the changed scores times exp(their log-sum - that of the denominator). A
// kernel's own sum differs from the true one by what its log-sum-exp may.
std::optional<bound::Expected> answer(const Specification& s, const bound::Expected& truth,
                                      const WeightChangeOf& change) {
    if (s.problem.softcap > 0 && s.dialect.softcap == SoftcapPlace::after_bias) return {};
    const auto kept = rows_of(s);
    const std::vector<oracle::RowDetail>& details = *kept;
    const RowsChanged changed(s, change, details);
    if (!changed.any || truth.lse.size() != details.size()) return {};
    const Specification biased = with_bias(s, [&](const MaskPlace& p) {
        const std::int64_t flat =
            (p.batch * s.problem.heads_q + p.head) * s.problem.len_q + p.query;
        const auto& row = changed.rows[static_cast<std::size_t>(flat)];
        return row && !row->numerator.empty() ? row->numerator[static_cast<std::size_t>(p.key)]
                                              : 0.0;
    });
    bound::Expected out =
        oracle::attend(biased.problem, biased.dialect, biased.numerics, biased.inputs);
    const double unit = s.dialect.lse_base == LseBase::two ? std::numbers::ln2 : 1.0;
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t n = 0; n < details.size(); ++n) {
        if (truth.row_empty[n] != 0) continue;
        const std::optional<WeightChange>& row = changed.rows[n];
        const double own = row ? log_sum_change(details[n], row->numerator) : infinite;
        const double sum = row ? row->denominator.value_or(own) : infinite;
        const bool known = std::abs(own) < most_change && std::abs(sum) < most_change;
        const double factor = std::exp(own - sum), slack = unit * truth.lse[n].bound;
        for (std::size_t k = n * dim; k < (n + 1) * dim; ++k) {
            bound::ExpectedElement& o = out.output[k];
            if (known && !std::isfinite(o.value)) continue;  // whatever the weights
            if (known) {
                const double extra = row->denominator ? std::abs(o.value) * slack : 0.0;
                o = {o.value * factor, o.error * factor, (o.bound + extra) * factor};
            } else {
                o = {0, 0, infinite};
            }
        }
        out.lse[n] = truth.lse[n];
        if (known)
            out.lse[n].value += sum / unit;
        else
            out.lse[n] = {0, 0, infinite};
    }
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

namespace {

std::vector<KeyExtent> parts_of(KeyExtent span, std::int64_t each) {
    std::vector<KeyExtent> list;
    for (std::int64_t from = span.begin; from < span.end; from += each)
        list.push_back({from, std::min(from + each, span.end)});
    return list;
}

}  // namespace

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
        if (row.weights[j] > 0) sum += row.weights[j] * std::expm1(change[j]);
    return std::log(sum);
}

Deviation weight_deviation(std::string id, std::string says, WeightChangeOf change) {
    return {.id = std::move(id),
            .says = std::move(says),
            .formula = [change = std::move(change)](const Specification& s,
                                                    const bound::Expected& truth) {
                return answer(s, truth, change);
            }};
}

}  // namespace attest::diagnosis
