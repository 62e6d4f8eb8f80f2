#include "properties/law/row_hull.hpp"

#include <algorithm>
#include <cmath>

#include "properties/law/reading.hpp"

namespace attest::law {

Hulls::Hulls(const Run& call)
    : call_(&call),
      visibility_(call.visibility()),
      model_(bound::resolve(call.problem(), call.trial().numerics())),
      scores_(call.problem(), call.inputs()),
      values_(call.inputs()[Role::v].to_doubles()) {
    for (const double v : values_) model_.value_max = std::max(model_.value_max, std::abs(v));
}

std::span<const double> Hulls::value(const Row& row, std::int64_t key) const {
    const Problem& p = call_->problem();
    const std::int64_t head = row.batch * p.heads_kv + row.head / group_size(p);
    const auto columns = static_cast<std::size_t>(value_dim(p));
    return std::span(values_).subspan(static_cast<std::size_t>(head * p.len_kv + key) * columns,
                                      columns);
}

RowHull Hulls::of(const Row& row) const {
    RowHull hull;
    for (std::int64_t j = 0; j < call_->problem().len_kv; ++j)
        if (visibility_.sees(row, j)) hull.keys.push_back(j);
    if (hull.keys.empty()) return hull;
    const std::span<const double> first = value(row, hull.keys[0]);
    hull.low.assign(first.begin(), first.end());
    hull.high = hull.low;
    std::vector<double> total(first.size(), 0.0);
    for (const std::int64_t j : hull.keys) {
        const std::span<const double> v = value(row, j);
        for (std::size_t c = 0; c < v.size(); ++c) {
            hull.low[c] = std::min(hull.low[c], v[c]);
            hull.high[c] = std::max(hull.high[c], v[c]);
            total[c] += std::abs(v[c]);
        }
    }
    const auto keys = static_cast<std::int64_t>(hull.keys.size());
    const double score = scores_.of(row);
    for (std::size_t c = 0; c < total.size(); ++c) {
        double &low = hull.low[c], &high = hull.high[c];
        if (call_->problem().sink) {  // one more key, of value zero
            low = std::min(low, 0.0);
            high = std::max(high, 0.0);
        }
        const HullSlack slack = hull_slack(model_, keys, score, total[c]);
        hull.slack.push_back(slack.relative * std::max(std::abs(low), std::abs(high)) +
                             slack.absolute);
    }
    return hull;
}

}  // namespace attest::law
