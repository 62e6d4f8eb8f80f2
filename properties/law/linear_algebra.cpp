#include "properties/law/linear_algebra.hpp"

#include <Eigen/QR>
#include <Eigen/SVD>

namespace attest::law {

Eigen::MatrixXd product(const Eigen::MatrixXd& left, const Eigen::MatrixXd& right) {
    return left * right;
}

Eigen::VectorXd singular_values(const Eigen::MatrixXd& matrix) {
    return Eigen::JacobiSVD<Eigen::MatrixXd>(matrix).singularValues();
}

// Jacobi rotations are backward stable: each one computed is an exact rotation of rows off by at
// most sqrt(2) gamma_6 of their size, 9 units of 2^-53 (Higham 2002, lemma 19.8). A sweep rotates
// every pair once from either side, in n - 1 rounds of disjoint pairs: 18 n units of the norm, and
// singular values move by no more (Weyl). 8 m n units allow for 0.4 m sweeps; Eigen ends after
// about log2 n. Of matrices with a few rows that is an allowance and no proof: roundings of one
// sign throughout would break it.
double svd_error(const Eigen::MatrixXd& matrix) {
    return 8.0 * static_cast<double>(matrix.rows() * matrix.cols()) * 0x1p-53 * matrix.norm();
}

Eigen::MatrixXd least_squares(const Eigen::MatrixXd& matrix, const Eigen::MatrixXd& target) {
    return matrix.colPivHouseholderQr().solve(target);
}

}  // namespace attest::law
