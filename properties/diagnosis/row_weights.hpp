#pragma once
// Wrong softmaxes: kernels whose weights are not exp(score - maximum) over their sum, row by row.

#include <optional>
#include <string>
#include <vector>

#include "properties/diagnosis/deviation.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

/// The keys of one sequence or document that a query may see: [begin, end) of the axis.
struct KeyExtent {
    std::int64_t begin = 0, end = 0;
};

/// Those of a row, which is flat over [batch, heads_q, len_q].
struct RowKeys : KeyExtent {
    std::size_t row = 0;
};

/// A sequence's or document's queries, [begin, end) of theirs, and its keys.
struct SegmentExtent {
    KeyExtent queries, keys;
};

/// That which query i of sequence b is of; of no document, an empty one behind the last.
SegmentExtent segment_of(const Problem& problem, std::int64_t b, std::int64_t i);

/// The keys of that.
KeyExtent span_of(const Specification& s, std::int64_t b, std::int64_t i);

/// Keys in ranges of `each`, the last of which may be shorter.
std::vector<KeyExtent> parts_of(KeyExtent span, std::int64_t each);

/// The ranges that the problem's splits take of them: ceil(keys / splits) keys each. All in one
/// where it asks for none.
std::vector<KeyExtent> split_extents(const Problem& problem, KeyExtent span);

/// The ways to part them that kernels which take keys tile by tile are known to have: as above, or
/// with as many whole tiles for each. What differs between them tells nothing of the tiles.
std::vector<std::vector<KeyExtent>> splits_of_tiles(const Problem& problem, KeyExtent span,
                                                    std::int64_t tile);

/// The log-sum-exp of some keys of a row, of the scores themselves: weights far below the row's
/// largest are 0. None where the row sees none of them.
std::optional<double> lse_between(const oracle::RowDetail& row, KeyExtent keys);

/// What a kernel makes of the weights of one row.
struct WeightChange {
    /// For each key of the axis, the logarithm of its weight in the sum over values by what it
    /// should be.
    std::vector<double> numerator;
    /// The same of the sum it is divided by; none: that of the weights as they are changed.
    std::optional<double> denominator;
};

/// None where the row cannot be told: a rounding could go either way.
using WeightChangeOf = std::function<std::optional<WeightChange>(
    const Specification&, const oracle::RowDetail&, const RowKeys&)>;

/// The logarithm of the row's sum, its sink included, with the weights changed, by the sum as it
/// is.
double log_sum_change(const oracle::RowDetail& row, const std::vector<double>& change);

/// A deviation that changes the weights. It has nothing to say of a call in which no weight of a
/// row it can tell changes.
Deviation weight_deviation(std::string id, std::string says, WeightChangeOf change);

}  // namespace attest::diagnosis
