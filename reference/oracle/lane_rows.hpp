#pragma once
// The definition's rows computed by the vectorised loops of lanes.hpp. Real is double or
// DoubleDouble; what differs between them is in lane_rows_double.cpp and
// lane_rows_double_double.cpp.

#include <limits>
#include <vector>

#include "reference/oracle/lanes.hpp"
#include "reference/oracle/real.hpp"
#include "reference/oracle/rotated_head.hpp"
#include "reference/oracle/row_arithmetic.hpp"

namespace attest {

/// One head, laid out for lanes, kept from row to row.
template <typename Real>
class LaneHead {
public:
    explicit LaneHead(const Prepared& call)
        : call_(call), turned_(call.problem.rope.style != RopeStyle::none), rotated_(call) {}

    /// Loads keys and values of the row's head and turns the query.
    void load(const RowQuery& query);

    TransposedKeys keys() const {
        return {key_hi_.data(), turned_low() ? key_lo_.data() : nullptr, call_.problem.dim_qk,
                padded(call_.problem.len_kv)};
    }
    const double* query_hi() const { return query_hi_.data(); }
    const double* query_lo() const { return turned_low() ? query_lo_.data() : nullptr; }
    const double* values() const { return values_.data(); }
    std::int64_t stride() const { return padded(call_.dim_v); }
    bool turned() const { return turned_; }
    const RotatedHead<Real>& sizes() const { return rotated_; }

private:
    bool turned_low() const { return turned_ && std::is_same_v<Real, DoubleDouble>; }

    const Prepared& call_;
    bool turned_;
    RotatedHead<Real> rotated_;
    std::vector<double> key_hi_, key_lo_, query_hi_, query_lo_, values_;
};

inline double high(double x) {
    return x;
}
inline double high(DoubleDouble x) {
    return x.hi;
}
inline double low(double) {
    return 0;
}
inline double low(DoubleDouble x) {
    return x.lo;
}

template <typename Real>
void LaneHead<Real>::load(const RowQuery& query) {
    const Problem& p = call_.problem;
    const std::int64_t d = p.dim_qk, n = p.len_kv, h_kv = query.h / call_.group;
    const bool fresh = turned_ ? rotated_.load(query.b, h_kv) : rotated_.load_sizes(query.b, h_kv);
    if (fresh) {
        const std::int64_t columns = padded(n);
        key_hi_.assign(static_cast<std::size_t>(d * columns), 0.0);
        if (turned_low()) key_lo_.assign(key_hi_.size(), 0.0);
        const double* from = call_.key(query.b, h_kv, 0);
        for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t c = 0; c < d; ++c) {
                const std::size_t to = static_cast<std::size_t>(c * columns + j);
                const std::size_t at = static_cast<std::size_t>(j * d + c);
                key_hi_[to] = turned_ ? high(rotated_.keys[at]) : from[at];
                if (turned_low()) key_lo_[to] = low(rotated_.keys[at]);
            }
        values_.assign(static_cast<std::size_t>(n * stride()), 0.0);
        for (std::int64_t j = 0; j < n; ++j) {
            const double* v = call_.value(query.b, h_kv, j);
            std::copy(v, v + call_.dim_v, values_.data() + j * stride());
        }
    }
    query_hi_.resize(static_cast<std::size_t>(d));
    query_lo_.resize(query_hi_.size());
    const double* from = call_.query(query.b, query.h, query.i);
    if (turned_)
        rotated_.turn_query(query.b, query.h, query.i, query.range.position);
    else
        rotated_.query_sizes(query.b, query.h, query.i);
    for (std::size_t c = 0; c < query_hi_.size(); ++c) {
        query_hi_[c] = turned_ ? high(rotated_.query[c]) : from[c];
        query_lo_[c] = turned_ ? low(rotated_.query[c]) : 0;
    }
}

/// What is left of a score after the dot product: scale, bias, cap.
template <typename Real>
Real finish_score(const Prepared& call, const RowQuery& query, std::size_t index, Real dot) {
    Real x = dot * Real(call.scale);
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

/// The keys a row's dot products are computed for: visible ones and what lies between, in whole
/// vectors.
struct KeySpan {
    std::int64_t first = 0, last = 0;
};
inline KeySpan span_of(std::span<const std::int64_t> visible) {
    if (visible.empty()) return {};
    return {visible.front() / lane_multiple * lane_multiple, padded(visible.back() + 1)};
}

}  // namespace attest
