#include "properties/law/nnls.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <limits>
#include <vector>

namespace attest::law {

namespace {

/// The unconstrained least squares solution on the passive columns alone, zero elsewhere.
Eigen::VectorXd solve_passive(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& target,
                              const std::vector<char>& passive) {
    std::vector<Eigen::Index> columns;
    for (std::size_t j = 0; j < passive.size(); ++j)
        if (passive[j]) columns.push_back(static_cast<Eigen::Index>(j));
    Eigen::MatrixXd part(matrix.rows(), static_cast<Eigen::Index>(columns.size()));
    for (std::size_t at = 0; at < columns.size(); ++at)
        part.col(static_cast<Eigen::Index>(at)) = matrix.col(columns[at]);
    const Eigen::VectorXd solution = part.colPivHouseholderQr().solve(target);
    Eigen::VectorXd full = Eigen::VectorXd::Zero(matrix.cols());
    for (std::size_t at = 0; at < columns.size(); ++at)
        full[columns[at]] = solution[static_cast<Eigen::Index>(at)];
    return full;
}

/// Moves from `from` towards `to` as far as no weight turns negative, and drops the columns that
/// reach zero.
void step_until_zero(Eigen::VectorXd& from, const Eigen::VectorXd& to, std::vector<char>& passive) {
    double step = 1;
    for (std::size_t j = 0; j < passive.size(); ++j) {
        const auto at = static_cast<Eigen::Index>(j);
        if (passive[j] && to[at] <= 0) step = std::min(step, from[at] / (from[at] - to[at]));
    }
    from += step * (to - from);
    constexpr double nothing = std::numeric_limits<double>::epsilon();
    for (std::size_t j = 0; j < passive.size(); ++j) {
        const auto at = static_cast<Eigen::Index>(j);
        if (passive[j] && from[at] > nothing) continue;
        passive[j] = 0;
        from[at] = 0;
    }
}

}  // namespace

NonNegativeFit fit_non_negative(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& target,
                                int iterations_max) {
    NonNegativeFit fit;
    fit.weights = Eigen::VectorXd::Zero(matrix.cols());
    std::vector<char> passive(static_cast<std::size_t>(matrix.cols()), 0);
    // A gradient this small is rounding.
    const double noise = std::numeric_limits<double>::epsilon() * 16 *
                         std::max(1.0, matrix.norm()) * std::max(1.0, target.norm());
    for (int iteration = 0; iteration < iterations_max; ++iteration) {
        fit.residual = target - matrix * fit.weights;
        const Eigen::VectorXd gradient = matrix.transpose() * fit.residual;
        Eigen::Index best = -1;
        for (Eigen::Index j = 0; j < gradient.size(); ++j)
            if (!passive[static_cast<std::size_t>(j)] && gradient[j] > noise &&
                (best < 0 || gradient[j] > gradient[best]))
                best = j;
        if (best < 0) {
            fit.converged = true;
            return fit;
        }
        passive[static_cast<std::size_t>(best)] = 1;
        for (int inner = 0; inner < iterations_max; ++inner) {
            const Eigen::VectorXd solution = solve_passive(matrix, target, passive);
            bool feasible = true;
            for (std::size_t j = 0; j < passive.size(); ++j)
                if (passive[j] && !(solution[static_cast<Eigen::Index>(j)] > 0)) feasible = false;
            if (feasible) {
                fit.weights = solution;
                break;
            }
            step_until_zero(fit.weights, solution, passive);
        }
    }
    fit.residual = target - matrix * fit.weights;
    return fit;
}

}  // namespace attest::law
