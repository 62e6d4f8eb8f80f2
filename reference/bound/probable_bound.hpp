#pragma once
// Bound (b) (README.md, "Random roundings"): what a kernel whose errors are independent and
// unbiased stays within, except with probability delta an element. A violation is a suspicion,
// never a proof: the model of the errors is an assumption. It has no form for the LSE.

#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/forward_bound.hpp"

namespace attest::bound {

/// t = lambda sqrt(sum c_k^2) bounds a sum of independent zero-mean errors, each uniform in
/// [-c_k, c_k], except with probability delta: lambda = sqrt((2/3) log(2/delta)) (a uniform
/// variable is sub-Gaussian with proxy c^2/3; Azuma-Hoeffding).
double azuma_factor(double delta) noexcept;

class ProbableRow {
public:
    /// `weights`: the format P is rounded to where model.up > 0.
    ProbableRow(const KernelModel& model, Precision weights) : model_(model), weights_(weights) {}

    /// values [len_kv, stride]; visible: the keys of facts' entries; exact [columns].
    /// Writes the bound of each column; never above `worst_case` (bound (a)), where it starts.
    void bound(const RowFacts& facts, std::span<const std::int64_t> visible, const double* values,
               std::int64_t stride, std::span<const double> exact, double factor,
               std::span<double> worst_case);

private:
    void group(const RowFacts& facts);
    void square_groups(std::span<const std::int64_t> visible, const double* values,
                       std::int64_t stride, std::span<const double> exact);

    KernelModel model_;
    Precision weights_;
    std::vector<std::size_t> order_;                 ///< entries by falling score
    std::vector<std::uint8_t> new_score_, new_bin_;  ///< in that order: a group starts here
    std::vector<double> of_score_, of_rounding_;     ///< p h_j, p r_j
    double scale_ = 1;
    std::vector<double> square_, score_sum_, rounding_sum_;
};

}  // namespace attest::bound
