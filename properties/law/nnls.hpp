#pragma once
// Non-negative least squares, for convex_hull.membership: the weights w >= 0 that come nearest to
// reproducing an output. Its answer is never trusted: weights are checked by multiplying out, and a
// claim that there are none by the separating direction that the residual is.

#include <Eigen/Core>

namespace attest::law {

struct NonNegativeFit {
    Eigen::VectorXd weights;   ///< >= 0
    Eigen::VectorXd residual;  ///< target - matrix * weights
    bool converged = false;
};

/// min |matrix w - target|_2 over w >= 0, by Lawson and Hanson's active sets (Solving Least Squares
/// Problems, 1974, chapter 23). Stops after `iterations_max` exchanges.
NonNegativeFit fit_non_negative(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& target,
                                int iterations_max);

}  // namespace attest::law
