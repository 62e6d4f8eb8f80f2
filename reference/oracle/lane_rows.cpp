#include "reference/oracle/lane_rows.hpp"

namespace attest::oracle {

namespace {

double high(double x) {
    return x;
}
double high(DoubleDouble x) {
    return x.hi;
}
double low(double) {
    return 0;
}
double low(DoubleDouble x) {
    return x.lo;
}

}  // namespace

KeySpan span_of(std::span<const RowQuery> queries) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
    for (const RowQuery& query : queries) {
        if (query.visible.empty()) continue;
        first = std::min(first, query.visible.front());
        last = std::max(last, query.visible.back() + 1);
    }
    if (first >= last) return {};
    return {first / key_tile * key_tile, TiledKeys::room(last)};
}

template <typename Real>
void LaneHead<Real>::load_head(std::int64_t b, std::int64_t h_kv) {
    if (b == b_ && h_kv == h_kv_) return;
    b_ = b;
    h_kv_ = h_kv;
    const std::int64_t d = call_.problem.dim_qk, n = call_.problem.len_kv;
    const std::size_t room = static_cast<std::size_t>(d * TiledKeys::room(n));
    if (turned_) rotated_.load(b, h_kv);
    key_hi_.assign(room, 0.0);
    if (turned_low()) key_lo_.assign(room, 0.0);
    const double* from = call_.key(b, h_kv, 0);
    for (std::int64_t tile = 0; tile < n; tile += key_tile)
        for (std::int64_t c = 0; c < d; ++c) {
            double* to = key_hi_.data() + TiledKeys::at(d, tile, c);
            const std::int64_t keys = std::min(key_tile, n - tile);
            for (std::int64_t j = 0; j < keys; ++j) {
                const std::int64_t source = (tile + j) * d + c;
                to[j] =
                    turned_ ? high(rotated_.keys[static_cast<std::size_t>(source)]) : from[source];
            }
            for (std::int64_t j = 0; turned_low() && j < keys; ++j)
                key_lo_[static_cast<std::size_t>(TiledKeys::at(d, tile + j, c))] =
                    low(rotated_.keys[static_cast<std::size_t>((tile + j) * d + c)]);
        }
    if (!turned_) {
        key_max_ = extent(from, n * d).largest;
        key_unit_ = power_below(key_max_);
        key_size_.resize(room);
        narrow_sizes(key_hi_.data(), 1 / key_unit_, static_cast<std::int64_t>(room),
                     key_size_.data());
    }
    values_ = call_.value(b, h_kv, 0);
    const std::int64_t stride = padded(call_.dim_v);
    if (stride == call_.dim_v) return;
    padded_values_.assign(static_cast<std::size_t>(n * stride), 0.0);
    for (std::int64_t j = 0; j < n; ++j)
        std::copy(values_ + j * call_.dim_v, values_ + (j + 1) * call_.dim_v,
                  padded_values_.data() + j * stride);
    values_ = padded_values_.data();
}

template <typename Real>
void LaneHead<Real>::load(std::span<const RowQuery> queries, const KeySpan& span) {
    const std::int64_t d = call_.problem.dim_qk;
    load_head(queries.front().b, queries.front().h / call_.group);
    span_ = span;
    const std::size_t rows = queries.size();
    query_hi_.resize(at(rows));
    query_lo_.resize(at(rows));
    query_size_.resize(at(rows));
    query_max_.assign(rows, 0.0);
    turned_of_.resize(turned_ ? rows : 0);
    for (std::size_t row = 0; row < rows; ++row) {
        const RowQuery& query = queries[row];
        const double* from = call_.query(query.b, query.h, query.i);
        if (turned_) {
            rotated_.turn_query(query.b, query.h, query.i, query.range.position);
            for (std::size_t c = 0; c < static_cast<std::size_t>(d); ++c) {
                query_hi_[at(row) + c] = high(rotated_.query[c]);
                query_lo_[at(row) + c] = low(rotated_.query[c]);
            }
            const std::size_t sink = query.sink != nullptr ? 1 : 0;
            rotated_.sizes(query.visible, query.visible.size() + sink, turned_of_[row]);
            continue;
        }
        std::copy(from, from + d, query_hi_.data() + at(row));
        query_max_[row] = extent(from, d).largest;
        narrow_sizes(from, 1 / power_below(query_max_[row]), d, query_size_.data() + at(row));
    }
    if (!turned_) size_products(rows);
}

template <typename Real>
void LaneHead<Real>::size_products(std::size_t rows) {
    const std::int64_t d = call_.problem.dim_qk, width = span_.size();
    size_.resize(rows * static_cast<std::size_t>(width));
    for (std::int64_t j = span_.first; j < span_.last; j += key_tile)
        add_product(Product<float>{.rows = static_cast<std::int64_t>(rows),
                                   .inner = d,
                                   .width = key_tile,
                                   .a = query_size_.data(),
                                   .a_stride = d,
                                   .b = key_size_.data() + TiledKeys::at(d, j, 0),
                                   .b_stride = key_tile,
                                   .out = size_.data() + (j - span_.first),
                                   .out_stride = width,
                                   .fresh = true});
}

template <typename Real>
void LaneHead<Real>::sizes(std::size_t row, const RowQuery& query, std::size_t entries,
                           RowValues& out) {
    if (turned_) {
        out.magnitude = turned_of_[row].magnitude;
        out.turn = turned_of_[row].turn;
        out.q_max = turned_of_[row].q_max;
        out.k_max = turned_of_[row].k_max;
        return;
    }
    const SizeUnits units(call_.problem.dim_qk, query_max_[row], key_unit_, call_.scale);
    const float* size = size_.data() + static_cast<std::int64_t>(row) * span_.size() - span_.first;
    out.turn.clear();
    out.q_max = query_max_[row];
    out.k_max = key_max_;
    out.magnitude.resize(entries);
    const std::size_t keys = query.visible.size();
    if (query.dense()) {
        size += keys > 0 ? query.visible.front() : 0;
    } else {
        seen_size_.resize(keys);
        for (std::size_t j = 0; j < keys; ++j) seen_size_[j] = size[query.visible[j]];
        size = seen_size_.data();
    }
    widen_upward(size, units.factor(), units.least(), static_cast<std::int64_t>(keys),
                 out.magnitude.data());
    if (entries > keys) out.magnitude[keys] = 0;
}

template class LaneHead<double>;
template class LaneHead<DoubleDouble>;

}  // namespace attest::oracle
