#pragma once
// How far an output may leave the convex hull of the visible values in a correct kernel, without
// asking the reference: from the declared numerics, the number of keys and a bound on the scores.

#include <vector>

#include "properties/law/compare.hpp"
#include "reference/bound/kernel_model.hpp"

namespace attest::law {

/// Upper bounds on |S_ij| over the keys of a row, by Cauchy and Schwarz from the norms of q_i and
/// of the longest key; with the soft cap, and the largest bias added.
class ScoreBounds {
public:
    ScoreBounds(const Problem& problem, const TensorSet& inputs);
    double of(const Row& row) const noexcept;

private:
    std::int64_t heads_q_ = 0, heads_kv_ = 0, queries_ = 0;
    double scale_ = 1, softcap_ = 0, bias_ = 0;
    std::vector<double> query_norm_;    ///< [batch, heads_q, len_q]
    std::vector<double> key_norm_max_;  ///< [batch, heads_kv]
};

/// The computed output is sum_j w_j v_jc with weights w_j >= 0 of its own for each column, whose
/// sum is within `relative` of one, and beyond that off by at most `absolute`; both before the
/// rounding to the stored format.
struct HullSlack {
    double relative = 0, absolute = 0;
};

/// `values_total` is at least sum_j |v_jc| over the visible keys. Infinite where the declared
/// numerics promise nothing for so many keys.
HullSlack hull_slack(const bound::KernelModel& model, std::int64_t keys, double score_max,
                     double values_total);

}  // namespace attest::law
