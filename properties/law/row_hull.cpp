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

double Hulls::value(const Row& row, std::int64_t key, std::int64_t channel) const {
    const Problem& p = call_->problem();
    const std::int64_t head = row.batch * p.heads_kv + row.head / group_size(p);
    return values_[static_cast<std::size_t>((head * p.len_kv + key) * value_dim(p) + channel)];
}

RowHull Hulls::of(const Row& row) const {
    RowHull hull;
    for (std::int64_t j = 0; j < call_->problem().len_kv; ++j)
        if (visibility_.sees(row, j)) hull.keys.push_back(j);
    if (hull.keys.empty()) return hull;
    for (std::int64_t c = 0; c < value_dim(call_->problem()); ++c) {
        double low = value(row, hull.keys[0], c), high = low, total = 0;
        for (const std::int64_t j : hull.keys) {
            low = std::min(low, value(row, j, c));
            high = std::max(high, value(row, j, c));
            total += std::abs(value(row, j, c));
        }
        // A sink is one more key, of value zero.
        if (call_->problem().sink) {
            low = std::min(low, 0.0);
            high = std::max(high, 0.0);
        }
        const HullSlack slack =
            hull_slack(model_, static_cast<std::int64_t>(hull.keys.size()), scores_.of(row), total);
        hull.low.push_back(low);
        hull.high.push_back(high);
        hull.slack.push_back(slack.relative * std::max(std::abs(low), std::abs(high)) +
                             slack.absolute);
    }
    return hull;
}

}  // namespace attest::law
