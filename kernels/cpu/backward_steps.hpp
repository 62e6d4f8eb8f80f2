#pragma once
// The backward pass as its definition reads, step by step. Each step is a function of its own,
// named in BackwardSteps; a planted bug of kernels/mutants is the same table with one exchanged.
//
//   P = exp(S - L),  dP = dO.v,  D = dO.O - dL,  dS = P (dP - D),  dX = dS cap'(X)
//   dQ = scale sum dX k,  dK = scale sum dX q,  dV = sum P dO,  dbias = sum dS,  dsink = -sum P D
//   dslope = -sum |i - j| dS
//
// Dropout multiplies dP, and P in dV, by what forward multiplied the weight by (factor).
// L and O are what forward stored, dL the gradient of L, 0 where none is given. Rotated dQ and dK
// are turned back once they are summed.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/backward_row.hpp"
#include "kernels/cpu/dropout.hpp"
#include "kernels/cpu/gradient_store.hpp"
#include "kernels/cpu/score.hpp"

namespace attest::cpu {

/// The correct steps, as BackwardSteps names and explains them.
namespace plain {
inline void call_backward(Call&) {}
template <typename Real>
void begin_head(const Call&, const Segment&, std::int64_t, const BackSums<Real>&) {}
inline std::int64_t queries(const Call&, const Segment& s) {
    return s.queries;
}
template <typename Real>
Real stored_lse(const BackRow<Real>& row) {
    return row.lse;
}
template <typename Real>
Real delta(const BackRow<Real>& row) {
    Real sum = 0;
    for (std::int64_t c = 0; c < row.call.problem.dim_v; ++c) sum += row.d_o[c] * row.output[c];
    return sum;
}
template <typename Real>
Real lse_gradient(const BackRow<Real>& row) {
    return lse_gradient_of<Real>(row.call, row.segment, row.head, row.i);
}
template <typename Real>
Real probability(const BackPair<Real>& pair) {
    return std::exp(pair.score - pair.row.lse);
}
template <typename Real>
Real factor(const BackPair<Real>& pair) {
    const WeightCell at = cell_of(pair.row.segment, pair.row.head, pair.row.i, pair.j);
    return static_cast<Real>(weight_factor(pair.row.call.problem, at));
}
template <typename Real>
Real dropped_dp(const BackPair<Real>& pair) {
    return pair.factor == 0 ? 0 : pair.dp * pair.factor;
}
template <typename Real>
Real ds(const BackPair<Real>& pair) {
    return pair.probability * (pair.dp - pair.row.delta);
}
template <typename Real>
Real value_weight(const BackPair<Real>& pair) {
    return pair.probability * pair.factor;
}
template <typename Real>
Real slope(const BackPair<Real>& pair) {
    const double cap = pair.row.call.problem.softcap;
    if (cap == 0) return 1;
    const double t = static_cast<double>(pair.capped) / static_cast<double>(static_cast<Real>(cap));
    return static_cast<Real>(1 - t * t);
}
template <typename Real>
Real score_gradient(const BackPair<Real>&, Real dx) {
    return dx;
}
template <typename Real>
Real slope_term(const BackPair<Real>& pair) {
    const BackRow<Real>& row = pair.row;
    return -pair.ds * static_cast<Real>(distance_of(row.segment, row.i, pair.j));
}
template <typename Real>
bool hidden(const BackRow<Real>&, std::int64_t /*j*/, bool is) {
    return is;
}
template <typename Real>
Real scale(const Call& call) {
    return static_cast<Real>(call.problem.scale);
}
inline bool turns_back(const Call&) {
    return true;
}
template <typename Real>
void add(Real& sum, Real term) {
    sum += term;
}
template <typename Real>
void add_to_mask(Real& sum, const BackPair<Real>& pair) {
    sum += pair.ds;
}
inline std::byte* value_at(const Call& call, std::int64_t b, std::int64_t h, std::int64_t j,
                           std::int64_t c) {
    return call.d_v.at(b, h, j, c);
}
}  // namespace plain

template <typename Real>
struct BackwardSteps {
    /// The call as it was handed over, in every format, also where an input is f64.
    void (*call)(Call&) = plain::call_backward;
    /// Before a query head adds to its key head's sums; the queries of a segment.
    void (*begin_head)(const Call&, const Segment&, std::int64_t group,
                       const BackSums<Real>&) = plain::begin_head<Real>;
    std::int64_t (*queries)(const Call&, const Segment&) = plain::queries;
    /// L, dO.O and dL of a row; whether a key that bias, order or length hide is passed over.
    Real (*stored_lse)(const BackRow<Real>&) = plain::stored_lse<Real>;
    Real (*delta)(const BackRow<Real>&) = plain::delta<Real>;
    Real (*lse_gradient)(const BackRow<Real>&) = plain::lse_gradient<Real>;
    bool (*hidden)(const BackRow<Real>&, std::int64_t j, bool is) = plain::hidden<Real>;
    /// P, dS and the cap's slope of a pair; dropout's factor, and dP with it.
    Real (*probability)(const BackPair<Real>&) = plain::probability<Real>;
    Real (*ds)(const BackPair<Real>&) = plain::ds<Real>;
    Real (*factor)(const BackPair<Real>&) = plain::factor<Real>;
    Real (*dropped_dp)(const BackPair<Real>&) = plain::dropped_dp<Real>;
    Real (*slope)(const BackPair<Real>&) = plain::slope<Real>;
    /// P as dV takes it, dX as dQ and dK do, the terms of the mask's and the sinks' gradients.
    Real (*value_weight)(const BackPair<Real>&) = plain::value_weight<Real>;
    Real (*score_gradient)(const BackPair<Real>&, Real dx) = plain::score_gradient<Real>;
    void (*add_to_mask)(Real& sum, const BackPair<Real>&) = plain::add_to_mask<Real>;
    void (*add_to_sinks)(Real& sum, Real term) = plain::add<Real>;
    /// What a pair adds to its slope's gradient.
    Real (*slope_term)(const BackPair<Real>&) = plain::slope_term<Real>;
    /// What dQ and dK are multiplied by; whether they are turned back; where dV goes.
    Real (*query_scale)(const Call&) = plain::scale<Real>;
    Real (*key_scale)(const Call&) = plain::scale<Real>;
    bool (*turns_back)(const Call&) = plain::turns_back;
    std::byte* (*value_at)(const Call&, std::int64_t b, std::int64_t h, std::int64_t j,
                           std::int64_t c) = plain::value_at;

    bool operator==(const BackwardSteps&) const = default;
};

std::size_t backward_workspace(const attest_problem& problem) noexcept;
/// Sums in f32, in f64 where an input is f64; P and dS are not rounded. `steps` are for f32, but
/// for `call`.
int backward_plain(const BackwardSteps<float>& steps, const attest_call* from, char* error,
                   std::size_t cap);

}  // namespace attest::cpu
