#pragma once
// The logarithms of the weights of one head as a matrix with what each may be off by.
// log P_ij = S_ij - L_i: the scores of a head up to one number a row, or the scores themselves
// where L is returned.

#include <cstdint>
#include <string>

#include "properties/law/linear_algebra.hpp"
#include "properties/law/probe.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

struct LogMatrix {
    Eigen::MatrixXd centre;  ///< [len_q, len_kv]
    /// Frobenius norm of the largest errors of all elements: by Weyl no singular value of the true
    /// matrix is further from that of `centre`. Infinite where some weight may be zero.
    double perturbation = 0;
};

/// log P with the mean of every row taken off: S C, where C = I - 11^T/n takes the row means off
/// the scores. Taking means off never enlarges the Frobenius norm of the errors.
LogMatrix centred_scores(const Weights& weights, std::int64_t batch, std::int64_t head);

/// log P_ij + L_i = S_ij. The kernel returned an LSE.
LogMatrix full_scores(const Weights& weights, std::int64_t batch, std::int64_t head);

/// Tells the tally whether singular value number `rank` (from 0) may be zero, as it is in a matrix
/// of that rank; `sentence` says what another rank would mean. Nothing is compared where the matrix
/// is known too badly or is too small.
void compare_rank(Tally& tally, const LogMatrix& matrix, std::int64_t rank, const Row& row,
                  const std::string& sentence);

}  // namespace attest::law
