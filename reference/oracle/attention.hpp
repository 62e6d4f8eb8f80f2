#pragma once
// Attention as its definition reads, for one query and the keys it sees, in any arithmetic:
//
//   S_j = cap(scale q.k_j) + b_j      or   cap(scale q.k_j + b_j)
//   m = max S_j,  w_j = exp(S_j - m),  l = sum w_j,  O_c = sum w_j v_jc / l,  L = m + log l
//
// A sink is one more score, in m and l alone. Nothing is blocked, reordered or fused.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/oracle/real.hpp"

namespace attest::oracle {

/// One query's inputs. Element is double, or Real where RoPE has turned q and k.
template <typename Element>
struct RowInputs {
    const Element* query = nullptr;  // [dim_qk]
    const Element* keys = nullptr;   // [len_kv, dim_qk]
    const double* values = nullptr;  // [len_kv, dim_v]
    std::int64_t dim_qk = 0, dim_v = 0;
    std::span<const std::int64_t> visible;  // indices of keys
    std::span<const double> mask;           // additive, one a visible key; empty: none
    std::span<const double> distance;       // |i + off - j|, one a visible key; empty: no ALiBi
    double slope = 0;
    double scale = 1, softcap = 0;
    bool cap_after_bias = false;
    const double* sink = nullptr;
};

/// What the definition computes. Reused from row to row.
template <typename Real>
struct AttentionRow {
    std::vector<Real> score, weight;  // one a visible key, then the sink; weights before division
    Real max{0.0}, sum{0.0}, lse{0.0};
    std::vector<Real> output;  // [dim_v]
    std::vector<Sum<Real>> sums;
};

template <typename Real, typename Element>
Real score_of(const RowInputs<Element>& in, std::size_t index) {
    const Element* key = in.keys + in.visible[index] * in.dim_qk;
    Sum<Real> dot;
    for (std::int64_t c = 0; c < in.dim_qk; ++c) dot.add_product(in.query[c], key[c]);
    Real x = dot.value() * Real(in.scale);

    Real bias(0.0);
    if (!in.mask.empty()) bias = Real(in.mask[index]);
    if (!in.distance.empty()) bias = bias - Real(in.slope) * Real(in.distance[index]);
    const bool biased = !in.mask.empty() || !in.distance.empty();

    if (biased && in.cap_after_bias) x = x + bias;
    if (in.softcap > 0) x = Real(in.softcap) * Arithmetics<Real>::tanh(x / Real(in.softcap));
    if (biased && !in.cap_after_bias) x = x + bias;
    return x;
}

template <typename Real, typename Element>
void attend_row(const RowInputs<Element>& in, AttentionRow<Real>& row) {
    const std::size_t keys = in.visible.size();
    row.score.clear();
    row.weight.clear();
    for (std::size_t j = 0; j < keys; ++j) row.score.push_back(score_of<Real>(in, j));
    if (in.sink != nullptr) row.score.push_back(Real(*in.sink));

    row.max = row.score.front();
    for (const Real& s : row.score)
        if (row.max < s) row.max = s;

    Sum<Real> total;
    for (const Real& s : row.score) {
        row.weight.push_back(Arithmetics<Real>::exp(s - row.max));
        total.add(row.weight.back());
    }
    row.sum = total.value();

    const std::size_t dim_v = static_cast<std::size_t>(in.dim_v);
    row.sums.assign(dim_v, Sum<Real>());
    for (std::size_t j = 0; j < keys; ++j) {
        const double* value = in.values + in.visible[j] * in.dim_v;
        const Real weight = row.weight[j];
        for (std::size_t c = 0; c < dim_v; ++c) row.sums[c].add_product(weight, value[c]);
    }
    row.output.resize(dim_v, Real(0.0));
    for (std::size_t c = 0; c < dim_v; ++c) row.output[c] = row.sums[c].value() / row.sum;
    row.lse = row.max + Arithmetics<Real>::log(row.sum);
}

}  // namespace attest::oracle
