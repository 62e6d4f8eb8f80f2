#pragma once
// The gradients as their definition reads, row by row, in any arithmetic.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/oracle/attention.hpp"
#include "reference/problem/dialect.hpp"

namespace attest::oracle {

/// One row's part of every gradient.
template <typename Real>
struct GradientRow {
    std::vector<Real> weight;  // P_ij, one a visible key, then the sink
    std::vector<Real> dp;      // dO_i.v_j; 0 for the sink
    std::vector<Real> ds;      // dS_ij
    std::vector<Real> slope;   // cap'(X_ij); empty: no cap
    Real d{0.0};               // D_i less the gradient of the LSE
};

/// The LSE in base 2 is the natural one over log(2), and so is its derivative.
template <typename Real>
Real of_natural_lse(LseBase base, double d_lse) {
    if (base == LseBase::e || d_lse == 0) return Real(d_lse);
    return Real(d_lse) / Arithmetics<Real>::log(Real(2.0));
}

/// `row` is what attend_row made of `in`; `d_lse` is the gradient of its LSE in natural units. Its
/// derivative of a score is P_ij, of the sink the sink's weight: dS_ij = P_ij (dP_ij - D_i + dL_i).
template <typename Real, typename Element>
void gradient_row(const RowInputs<Element>& in, const AttentionRow<Real>& row,
                  const double* d_output, const Real& d_lse, GradientRow<Real>& out) {
    const std::size_t keys = in.visible.size(), entries = row.weight.size();
    out.weight.clear();
    out.dp.clear();
    out.ds.clear();
    out.slope.clear();
    Sum<Real> d;
    for (std::int64_t c = 0; c < in.dim_v; ++c)
        d.add_product(row.output[static_cast<std::size_t>(c)], d_output[c]);
    d.add(Real(0.0) - d_lse);
    out.d = d.value();
    for (std::size_t j = 0; j < entries; ++j) {
        Sum<Real> dp;
        if (j < keys) {
            const double* v = in.values + in.visible[j] * in.dim_v;
            for (std::int64_t c = 0; c < in.dim_v; ++c) dp.add_product(d_output[c], v[c]);
        }
        out.weight.push_back(row.weight[j] / row.sum);
        out.dp.push_back(dp.value());
        out.ds.push_back(out.weight[j] * (out.dp[j] - out.d));
        if (!(in.softcap > 0)) continue;
        // The capped number is the score, less the bias where that came after.
        Real capped = row.score[j];
        if (j < keys && !in.cap_after_bias) {
            if (!in.distance.empty()) capped = capped + Real(in.slope) * Real(in.distance[j]);
            if (!in.mask.empty()) capped = capped - Real(in.mask[j]);
        }
        const Real t = capped / Real(in.softcap);
        out.slope.push_back(j < keys ? Real(1.0) - t * t : Real(1.0));
    }
}

}  // namespace attest::oracle
