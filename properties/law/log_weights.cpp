#include "properties/law/log_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest::law {

namespace {

/// Every element an interval; `shift` is added to each of its row.
template <typename Shift>
LogMatrix collect(const Weights& weights, std::int64_t batch, std::int64_t head, Shift&& shift) {
    const Problem& p = weights.first().problem();
    LogMatrix matrix;
    matrix.centre.resize(p.len_q, p.len_kv);
    double squares = 0;
    for (std::int64_t i = 0; i < p.len_q; ++i) {
        const Row row{batch, head, i};
        const Interval added = shift(row);
        for (std::int64_t j = 0; j < p.len_kv; ++j) {
            const Interval score = log(weights.at(row, j)) + added;
            matrix.centre(i, j) = score.finite() ? score.mid() : 0;
            const double radius =
                score.finite() ? score.radius() : std::numeric_limits<double>::infinity();
            squares += radius * radius;
        }
    }
    // The sum of squares and its root are off by less than their number times 2^-53.
    matrix.perturbation = std::sqrt(squares) * (1 + 0x1p-30);
    return matrix;
}

}  // namespace

LogMatrix centred_scores(const Weights& weights, std::int64_t batch, std::int64_t head) {
    LogMatrix matrix = collect(weights, batch, head, [](const Row&) { return Interval{}; });
    const double size = matrix.centre.norm();
    matrix.centre.colwise() -= matrix.centre.rowwise().mean().eval();
    // The means themselves are computed in double.
    matrix.perturbation += static_cast<double>(matrix.centre.cols() + 2) * 0x1p-52 * size;
    return matrix;
}

LogMatrix full_scores(const Weights& weights, std::int64_t batch, std::int64_t head) {
    return collect(weights, batch, head,
                   [&](const Row& row) { return lse_truth(weights.first(), row); });
}

void compare_rank(Tally& tally, const LogMatrix& matrix, std::int64_t rank, const Row& row,
                  const std::string& sentence) {
    if (!std::isfinite(matrix.perturbation)) return;
    const Eigen::VectorXd values = singular_values(matrix.centre);
    if (rank >= values.size()) return;
    const double bound = matrix.perturbation + svd_error(matrix.centre);
    tally.at_most(Interval::around(values[rank], bound), {0, 0}, output_at(row, 0), [&] {
        return fmt::format("{}: singular value {} is {:.3g}", sentence, rank + 1, values[rank]);
    });
}

}  // namespace attest::law
