#pragma once
// The gradients themselves, summed row by row in one arithmetic.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/oracle/gradient_definition.hpp"
#include "reference/oracle/prepared.hpp"
#include "reference/oracle/rotation.hpp"
#include "reference/oracle/visibility.hpp"

namespace attest::oracle {

template <typename Real>
std::vector<double> nearest(const std::vector<Sum<Real>>& from) {
    std::vector<double> out;
    for (const Sum<Real>& x : from) out.push_back(Arithmetics<Real>::nearest(x.value()));
    return out;
}

/// Where one row stands.
struct RowPlace {
    std::int64_t b = 0, h = 0, i = 0;
};

template <typename Real>
struct GradientSums {
    std::vector<Sum<Real>> d_q, d_k, d_v, d_mask, d_sinks, d_slopes;

    /// Adds a row that sees the keys `seen`; its dQ is in the turned frame, like its inputs.
    template <typename Element>
    void add(const Prepared& call, RowPlace at, std::span<const std::int64_t> seen,
             const RowInputs<Element>& in, const GradientRow<Real>& row, const double* d_output) {
        const Problem& p = call.problem;
        const std::size_t d = static_cast<std::size_t>(p.dim_qk);
        const std::size_t dim_v = static_cast<std::size_t>(call.dim_v);
        const std::int64_t key_row = (at.b * p.heads_kv + at.h / call.group) * p.len_kv;
        Sum<Real>* query = d_q.data() + ((at.b * p.heads_q + at.h) * p.len_q + at.i) * p.dim_qk;
        for (std::size_t j = 0; j < seen.size(); ++j) {
            const std::size_t key = static_cast<std::size_t>(key_row + seen[j]);
            Real dx = row.ds[j];
            if (!row.slope.empty()) dx = dx * row.slope[j];
            if (!d_mask.empty())
                d_mask[call.mask_index(at.b, at.h, at.i, seen[j])].add(
                    in.cap_after_bias ? dx : row.ds[j]);
            if (!d_slopes.empty())
                d_slopes[static_cast<std::size_t>(at.h)].add_product(
                    in.cap_after_bias ? dx : row.ds[j], -in.distance[j]);
            const Real scaled = dx * Real(in.scale);
            const Element* k = in.keys + seen[j] * in.dim_qk;
            for (std::size_t c = 0; c < d; ++c) {
                query[c].add_product(scaled, k[c]);
                d_k[key * d + c].add_product(scaled, in.query[c]);
            }
            for (std::size_t c = 0; c < dim_v; ++c)
                d_v[key * dim_v + c].add_product(row.weight[j], d_output[c]);
        }
        if (in.sink != nullptr) d_sinks[static_cast<std::size_t>(at.h)].add(row.ds[seen.size()]);
    }

    /// dQ and dK out of RoPE's frame, once all rows are in.
    void turn_back(const Prepared& call, const Rotation<Real>& rotation) {
        const Problem& p = call.problem;
        for (std::int64_t row = 0; row < p.batch * p.heads_q * p.len_q; ++row) {
            const std::int64_t b = row / (p.heads_q * p.len_q), i = row % p.len_q;
            const std::int64_t position = keys_of(p, call.dialect, b, i).position;
            turn_row(d_q, row, p, position, rotation);
        }
        if (p.cache.present && p.cache.keys_rotated) return;
        for (std::int64_t row = 0; row < p.batch * p.heads_kv * p.len_kv; ++row)
            turn_row(d_k, row, p, key_position(p, row % p.len_kv), rotation);
    }

private:
    static void turn_row(std::vector<Sum<Real>>& sums, std::int64_t row, const Problem& p,
                         std::int64_t position, const Rotation<Real>& rotation) {
        const std::size_t d = static_cast<std::size_t>(p.dim_qk);
        const std::size_t at = static_cast<std::size_t>(row) * d;
        std::vector<Real> x(d, Real(0.0));
        for (std::size_t c = 0; c < d; ++c) x[c] = sums[at + c].value();
        rotation.turn_back(x.data(), p.rope.offset + position);
        for (std::size_t c = 0; c < d; ++c) {
            sums[at + c] = Sum<Real>();
            sums[at + c].add(x[c]);
        }
    }
};

}  // namespace attest::oracle
