#include "reference/bound/error_budget.hpp"

#include <algorithm>
#include <cmath>

namespace attest::bound {

namespace {

// The mean square of the relative error of one rounding to nearest is 0.18 u^2: with mantissas
// distributed as 1/x (Benford) the mean of (ulp(x)/x)^2 / 12 over a binade, in units of u^2, is
// (1/ln 2) int_1^2 (1/3) x^-3 dx = 1/(8 ln 2) = 0.18.
constexpr double mean_square = 0.18;

double ulp(double x, Precision format) noexcept {
    const FormatTraits t = traits(format);
    const double least = std::ldexp(1.0, t.exponent_min - t.significand_bits + 1);
    if (!(std::abs(x) > 0)) return least;
    return std::max(least, std::ldexp(2 * t.unit_roundoff, std::ilogb(x)));
}

}  // namespace

// Each weight is off by the rounding of P and by what its score is off by: d products in any order
// (README.md, "Error budget": the factors 0.8, d/3 + 4 are the mean squares of a random walk of
// partial sums), the subtraction of the maximum, two calls of an exp good to the last places. What
// a tile's running maximum makes of a weight decides how it rounds; where no tile is declared, the
// weight may be rounded in any frame, at worst at a power of two.
void BudgetRow::weigh(const RowFacts& facts) {
    const std::size_t entries = facts.score.size();
    const double unit = mean_square * model_.ua * model_.ua;
    const double dims = static_cast<double>(model_.dim_qk) / 3.0 + 4;
    const double top = std::exp(facts.max - facts.lse);
    of_score_.resize(entries);
    of_rounding_.resize(entries);
    for (std::size_t j = 0; j < entries; ++j) {
        const double p = facts.weight[j], a = facts.magnitude[j], s = facts.score[j];
        const double below = facts.max - s;
        of_score_[j] = p * p * unit * (0.8 * a * a + dims * s * s + below * below + 2);
        const double w = p / top;
        of_rounding_[j] = 0;
        if (!(model_.up > 0) || !(w > 0)) continue;
        double step = w < 1 ? ulp(w, weights_) / w / std::sqrt(12.0) : 0;
        if (model_.tile == 0) step = std::max(step, 2 * model_.up / std::sqrt(12.0));
        step = std::min(1.0, step);
        of_rounding_[j] = p * p * step * step;
    }
}

void BudgetRow::predict(const RowFacts& facts, std::span<const std::int64_t> visible,
                        const double* values, std::int64_t stride, std::span<const double> exact,
                        std::span<BudgetElement> row) {
    weigh(facts);
    const std::size_t columns = row.size();
    for (auto* sums : {&variance_, &covariance_, &covariance_size_, &spread_, &mean_})
        sums->assign(columns, 0.0);
    const double keys = static_cast<double>(visible.size());
    const double unit = mean_square * model_.ua * model_.ua;
    const bool common = model_.sums_rounded_weights;
    for (std::size_t j = 0; j < visible.size(); ++j) {
        const double p = facts.weight[j], below = facts.score[j] - facts.max;
        const double of_sum = p * p * unit * (keys / 4 + 1);
        const double* v = values + visible[j] * stride;
        for (std::size_t c = 0; c < columns; ++c) {
            const double x = v[c] - exact[c], y = common ? x : v[c];
            variance_[c] += of_score_[j] * x * x + of_rounding_[j] * y * y + of_sum * v[c] * v[c];
            covariance_[c] += p * below * x;
            covariance_size_[c] += p * std::abs(below * x);
            spread_[c] += p * std::abs(x);
            mean_[c] += v[c];
        }
    }
    const double tiles =
        model_.tile > 0 ? std::ceil(keys / static_cast<double>(model_.tile)) : keys;
    const double rescales = std::min(std::max(tiles - 1, 0.0), 8.0);
    const double l = facts.lse, m = facts.max;
    const double merge = model_.may_split ? 4 * unit * (m * m + l * l + 1) : 0;
    const double zero_key = std::exp(-l);
    for (std::size_t c = 0; c < columns; ++c) {
        const double o = exact[c], s = spread_[c];
        // 1.33 ua^2: the scale's two constants, each uniform within 2u (README.md, "Error budget").
        const double square = variance_[c] +
                              model_.ua * model_.ua *
                                  (1.33 * covariance_[c] * covariance_[c] +
                                   mean_square * covariance_size_[c] * covariance_size_[c]) +
                              (unit * 0.5 * rescales + merge) * s * s +
                              unit * (keys / 4 + 2) * o * o + std::pow(ulp(o, output_), 2) / 12;
        row[c] = {o,
                  std::sqrt(square),
                  {o, covariance_[c], keys > 0 ? mean_[c] / keys - o : 0, -o * zero_key}};
    }
}

}  // namespace attest::bound
