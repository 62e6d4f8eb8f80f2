#pragma once
// The keys of one head as RoPE turns them, and the sizes the bounds are made of. Kept from row to
// row: a head is loaded once.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/oracle/prepared.hpp"
#include "reference/oracle/rotation.hpp"
#include "reference/oracle/row_arithmetic.hpp"

namespace attest::oracle {

template <typename Real>
class RotatedHead {
public:
    explicit RotatedHead(const Prepared& call)
        : call_(call), rotation_(call.problem), dim_(call.problem.dim_qk) {}

    std::vector<Real> keys, query;               // [len_kv, dim_qk], [dim_qk]
    std::vector<double> key_size, key_turn;      // [len_kv, dim_qk]; see Rotation
    std::vector<double> query_size, query_turn;  // [dim_qk]
    double key_max = 0, query_max = 0;

    /// Turned keys and their sizes. True if the head was not the one loaded.
    bool load(std::int64_t b, std::int64_t h_kv) {
        if (b == b_ && h_kv == h_kv_) return false;
        start(b, h_kv);
        const Problem& p = call_.problem;
        const bool rotate = !(p.cache.present && p.cache.keys_rotated);
        keys.resize(key_size.size(), Real(0.0));
        key_turn.resize(key_size.size());
        const double* from = call_.key(b, h_kv, 0);
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            const std::int64_t at = j * dim_;
            // Keys that are turned already turn by nothing: only their sizes are wanted.
            rotation_.turn(from + at, rotate ? p.rope.offset + key_position(p, j) : 0,
                           keys.data() + at, key_size.data() + at, key_turn.data() + at);
        }
        key_max = largest(key_size);
        return true;
    }

    /// Sizes alone, for keys that are not turned.
    bool load_sizes(std::int64_t b, std::int64_t h_kv) {
        if (b == b_ && h_kv == h_kv_) return false;
        start(b, h_kv);
        const double* from = call_.key(b, h_kv, 0);
        for (std::size_t x = 0; x < key_size.size(); ++x) key_size[x] = std::abs(from[x]);
        key_max = largest(key_size);
        return true;
    }

    void turn_query(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t position) {
        query.resize(static_cast<std::size_t>(dim_), Real(0.0));
        query_size.resize(query.size());
        query_turn.resize(query.size());
        rotation_.turn(call_.query(b, h, i), call_.problem.rope.offset + position, query.data(),
                       query_size.data(), query_turn.data());
        query_max = largest(query_size);
    }

    void query_sizes(std::int64_t b, std::int64_t h, std::int64_t i) {
        query_size.resize(static_cast<std::size_t>(dim_));
        const double* from = call_.query(b, h, i);
        for (std::size_t c = 0; c < query_size.size(); ++c) query_size[c] = std::abs(from[c]);
        query_max = largest(query_size);
    }

    /// Fills magnitude, turn, q_max and k_max of a row of `entries`.
    void sizes(std::span<const std::int64_t> visible, std::size_t entries, RowValues& row) const {
        const double scale = std::abs(call_.scale);
        row.magnitude.assign(entries, 0.0);
        row.q_max = query_max;
        row.k_max = key_max;
        for (std::size_t j = 0; j < visible.size(); ++j)
            row.magnitude[j] =
                scale * magnitude(query_size.data(), key_size.data() + visible[j] * dim_, dim_);
        row.turn.clear();
        if (call_.problem.rope.style == RopeStyle::none) return;
        row.turn.assign(entries, 0.0);
        for (std::size_t j = 0; j < visible.size(); ++j) {
            const std::int64_t at = visible[j] * dim_;
            row.turn[j] = scale * (magnitude(query_turn.data(), key_size.data() + at, dim_) +
                                   magnitude(query_size.data(), key_turn.data() + at, dim_));
        }
    }

    const Rotation<Real>& rotation() const { return rotation_; }

private:
    static double largest(const std::vector<double>& x) {
        return x.empty() ? 0 : *std::max_element(x.begin(), x.end());
    }

    void start(std::int64_t b, std::int64_t h_kv) {
        b_ = b;
        h_kv_ = h_kv;
        key_size.resize(static_cast<std::size_t>(call_.problem.len_kv * dim_));
    }

    const Prepared& call_;
    Rotation<Real> rotation_;
    std::int64_t dim_ = 0, b_ = -1, h_kv_ = -1;
};

}  // namespace attest::oracle
