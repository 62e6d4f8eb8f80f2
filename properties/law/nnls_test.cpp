#include "properties/law/nnls.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attest::law {
namespace {

Eigen::MatrixXd any_matrix(Eigen::Index rows, Eigen::Index columns) {
    Eigen::MatrixXd matrix(rows, columns);
    for (Eigen::Index i = 0; i < rows; ++i)
        for (Eigen::Index j = 0; j < columns; ++j)
            matrix(i, j) = *rc::gen::resize(100, rc::gen::inRange(-1000, 1001)) / 64.0;
    return matrix;
}

RC_GTEST_PROP(NonNegativeFit, ReproducesWhatWeightsReproduce, ()) {
    const Eigen::Index rows = *rc::gen::inRange(1, 9), columns = *rc::gen::inRange(1, 17);
    const Eigen::MatrixXd matrix = any_matrix(rows, columns);
    const Eigen::VectorXd weights = any_matrix(columns, 1).cwiseAbs();
    const NonNegativeFit fit = fit_non_negative(matrix, matrix * weights, 200);
    RC_ASSERT(fit.weights.minCoeff() >= 0);
    RC_ASSERT(fit.residual.norm() <= 0x1p-30 * (1 + matrix.norm() * weights.norm()));
}

// Karush-Kuhn-Tucker: at the minimum no column points along the residual, and those in use are
// orthogonal to it.
RC_GTEST_PROP(NonNegativeFit, IsAMinimumWhereItConverges, ()) {
    const Eigen::Index rows = *rc::gen::inRange(1, 9), columns = *rc::gen::inRange(1, 9);
    const Eigen::MatrixXd matrix = any_matrix(rows, columns);
    const Eigen::VectorXd target = any_matrix(rows, 1);
    const NonNegativeFit fit = fit_non_negative(matrix, target, 200);
    RC_PRE(fit.converged);
    const double noise = 0x1p-30 * (1 + matrix.norm()) * (1 + target.norm());
    const Eigen::VectorXd gradient = matrix.transpose() * fit.residual;
    for (Eigen::Index j = 0; j < columns; ++j) {
        RC_ASSERT(gradient[j] <= noise);
        if (fit.weights[j] > 0x1p-20) RC_ASSERT(gradient[j] >= -noise);
    }
}

TEST(NonNegativeFit, PointsAwayFromAConeThatDoesNotHoldTheTarget) {
    const Eigen::MatrixXd matrix = Eigen::MatrixXd::Identity(2, 2);
    const NonNegativeFit fit = fit_non_negative(matrix, Eigen::Vector2d(1, -3), 10);
    EXPECT_EQ(fit.weights, Eigen::Vector2d(1, 0));
    EXPECT_EQ(fit.residual, Eigen::Vector2d(0, -3));
}

}  // namespace
}  // namespace attest::law
