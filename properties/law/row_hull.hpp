#pragma once
// The box of the values that one query sees, and how far a correct kernel may leave it.

#include <cstdint>
#include <span>
#include <vector>

#include "properties/law/hull_slack.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/visibility.hpp"

namespace attest::law {

/// What one row may return, column by column.
struct RowHull {
    std::vector<std::int64_t> keys;  ///< that the row sees; nothing else is filled without any
    std::vector<double> low, high, slack;  ///< [dim_v]
};

/// The hulls of the rows of one call that see a key. Keeps a pointer to the call.
class Hulls {
public:
    explicit Hulls(const Run& call);

    /// What the row sees of a key: [dim_v].
    std::span<const double> value(const Row& row, std::int64_t key) const;
    RowHull of(const Row& row) const;

private:
    const Run* call_;
    Visibility visibility_;
    bound::KernelModel model_;
    ScoreBounds scores_;
    std::vector<double> values_;
};

}  // namespace attest::law
