#pragma once
// What the laws need of dense linear algebra. Eigen's products and decompositions take a compiler
// seconds: they are compiled here, once.

#include <Eigen/Core>

namespace attest::law {

Eigen::MatrixXd product(const Eigen::MatrixXd& left, const Eigen::MatrixXd& right);

/// Singular values in descending order.
Eigen::VectorXd singular_values(const Eigen::MatrixXd& matrix);

/// What the singular values computed in double may be off by.
double svd_error(const Eigen::MatrixXd& matrix);

/// The X that minimises |matrix X - target|; the matrix is of full column rank. With the identity
/// as target it is the pseudo-inverse.
Eigen::MatrixXd least_squares(const Eigen::MatrixXd& matrix, const Eigen::MatrixXd& target);

}  // namespace attest::law
