#pragma once
// The definition's rows computed by the vectorised loops of lanes.hpp. Real is double or
// DoubleDouble; what differs between them is in lane_rows_double.cpp and
// lane_rows_double_double.cpp.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/oracle/lanes.hpp"
#include "reference/oracle/real.hpp"
#include "reference/oracle/rotated_head.hpp"
#include "reference/oracle/row_arithmetic.hpp"

namespace attest::oracle {

/// The keys a block's dot products are computed for: those some row sees and what lies between, in
/// whole tiles.
struct KeySpan {
    std::int64_t first = 0, last = 0;
    std::int64_t size() const { return last - first; }
};
KeySpan span_of(std::span<const RowQuery> queries);

/// One head, laid out for lanes and kept from block to block, and the block's queries.
template <typename Real>
class LaneHead {
public:
    explicit LaneHead(const Prepared& call)
        : call_(call), turned_(call.problem.rope.style != RopeStyle::none), rotated_(call) {}

    /// Loads keys and values of the block's head, and its queries.
    void load(std::span<const RowQuery> queries, const KeySpan& span);

    TiledKeys keys() const {
        return {key_hi_.data(), turned_low() ? key_lo_.data() : nullptr, call_.problem.dim_qk};
    }
    const double* query_hi(std::size_t row) const { return query_hi_.data() + at(row); }
    const double* query_lo(std::size_t row) const {
        return turned_low() ? query_lo_.data() + at(row) : nullptr;
    }
    const double* values() const { return values_; }  // [len_kv, padded(dim_v)]

    /// magnitude, turn, q_max and k_max of a row of the block.
    void sizes(std::size_t row, const RowQuery& query, std::size_t entries, RowValues& out);

private:
    static constexpr bool wide = std::is_same_v<Real, DoubleDouble>;
    bool turned_low() const { return turned_ && wide; }
    std::size_t at(std::size_t row) const {
        return row * static_cast<std::size_t>(call_.problem.dim_qk);
    }
    void load_head(std::int64_t b, std::int64_t h_kv);
    void size_products(std::size_t rows);

    const Prepared& call_;
    bool turned_;
    RotatedHead<Real> rotated_;
    std::int64_t b_ = -1, h_kv_ = -1;
    KeySpan span_;
    std::vector<double> key_hi_, key_lo_, padded_values_;  // keys in tiles
    const double* values_ = nullptr;
    std::vector<double> query_hi_, query_lo_;  // [rows, dim_qk]
    std::vector<float> key_size_;              // in tiles, |k| / key_unit_
    double key_unit_ = 1, key_max_ = 0;
    std::vector<float> query_size_;  // [rows, dim_qk], |q| / power_below(query_max_[row])
    std::vector<double> query_max_;
    std::vector<float> size_;           // [rows, span]
    std::vector<float> seen_size_;      // of one row's visible keys
    std::vector<RowValues> turned_of_;  // with RoPE: sizes of each row
};

/// What is left of a score after the scaled dot product: bias and cap.
template <typename Real>
Real finish_score(const Prepared& call, const RowQuery& query, std::size_t index, Real x) {
    const bool biased = !query.mask.empty() || !query.distance.empty();
    const double cap = call.problem.softcap;
    if (!biased && !(cap > 0)) return x;
    Real bias(0.0);
    if (!query.mask.empty()) bias = Real(query.mask[index]);
    if (!query.distance.empty()) bias = bias - Real(query.slope) * Real(query.distance[index]);
    const bool late = call.dialect.softcap == SoftcapPlace::after_bias;
    if (biased && late) x = x + bias;
    if (cap > 0) x = Real(cap) * Arithmetics<Real>::tanh(x / Real(cap));
    if (biased && !late) x = x + bias;
    return x;
}

/// Whether there is nothing left for finish_score.
inline bool is_finished(const Prepared& call, const RowQuery& query) {
    return query.mask.empty() && query.distance.empty() && !(call.problem.softcap > 0);
}

}  // namespace attest::oracle
