#include "properties/law/linear_algebra.hpp"

#include <Eigen/QR>
#include <Eigen/SVD>

namespace attest {

Eigen::MatrixXd product(const Eigen::MatrixXd& left, const Eigen::MatrixXd& right) {
    return left * right;
}

Eigen::VectorXd singular_values(const Eigen::MatrixXd& matrix) {
    return Eigen::JacobiSVD<Eigen::MatrixXd>(matrix).singularValues();
}

// Jacobi rotations are backward stable: the values computed are those of a matrix off by a modest
// polynomial of the size times 2^-53 (Higham 2002, section 19.9; Demmel 1997, 5.4.3). m n rotations
// of a few roundings each are covered by 8 m n.
double svd_error(const Eigen::MatrixXd& matrix) {
    return 8.0 * static_cast<double>(matrix.rows() * matrix.cols()) * 0x1p-53 * matrix.norm();
}

Eigen::MatrixXd least_squares(const Eigen::MatrixXd& matrix, const Eigen::MatrixXd& target) {
    return matrix.colPivHouseholderQr().solve(target);
}

}  // namespace attest
