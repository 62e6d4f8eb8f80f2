#pragma once
// Linear relations among the queries of a head, u^T Q = 0, in the scores: u^T S = sigma u^T Q K^T.

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <string>

#include "properties/law/probe.hpp"
#include "properties/law/tally.hpp"

namespace attest::law {

/// Orthonormal columns u with u^T Q = 0 but for roundings, Q the queries of one head: one for every
/// query more than the head dimension.
Eigen::MatrixXd relations_among(const TensorSet& inputs, const Problem& problem, std::int64_t batch,
                                std::int64_t head);

/// A relation among the queries of one head, in the scores of head `in`: what is left of it there
/// is computed from the inputs.
void compare_relation(Tally& tally, const Weights& weights, const TensorSet& inputs,
                      const Eigen::VectorXd& u, std::int64_t batch, std::int64_t in,
                      const std::function<std::string()>& sentence);

}  // namespace attest::law
