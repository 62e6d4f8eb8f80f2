#pragma once
// The error a kernel of declared numerics is expected to make, not at most but on average: the
// model of README.md, "Error budget", and the directions in which a wrong kernel's errors line up.
// Nothing here is a bound; it feeds the law of README.md, "Score tests", whose verdict is suspect.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/bound/forward_bound.hpp"
#include "reference/problem/precision.hpp"

namespace attest::bound {

/// What O_c would change by if the kernel were wrong in one way, per unit of wrongness:
///   gain         O_c                           every output too large
///   temperature  sum_j p_j (s_j - m)(v_jc - O_c)   scores too large
///   flatten      mean_j v_jc - O_c             a part of the weight spread evenly over the keys
///   zero_key     -O_c exp(-L)                  one more key of score 0 and value 0
enum class ErrorDirection : std::uint8_t { gain, temperature, flatten, zero_key };
constexpr std::size_t error_directions = 4;

struct BudgetElement {
    double value = 0;  ///< expected
    double sigma =
        0;  ///< standard deviation of a correct kernel's error, its last rounding included
    std::array<double, error_directions> direction{};
};

/// Every element of one call; rows of which nothing is claimed have sigma 0.
struct ErrorBudget {
    Shape output_shape{};  ///< [batch, heads_q, len_q, dim_v]
    std::vector<BudgetElement> output;
    double ua = 0, up = 0;  ///< of the declared numerics: accumulation, and weights (0: unrounded)
};

class BudgetRow {
public:
    /// `weights`: the format P is rounded to where model.up > 0; `output`: of O.
    BudgetRow(const KernelModel& model, Precision weights, Precision output)
        : model_(model), weights_(weights), output_(output) {}

    /// values [len_kv, stride]; visible: the keys of facts' entries; exact [columns], as is row.
    void predict(const RowFacts& facts, std::span<const std::int64_t> visible, const double* values,
                 std::int64_t stride, std::span<const double> exact, std::span<BudgetElement> row);

private:
    void weigh(const RowFacts& facts);

    KernelModel model_;
    Precision weights_, output_;
    std::vector<double> of_score_, of_rounding_;  // p_j^2 times a variance
    std::vector<double> variance_, covariance_, covariance_size_, spread_, mean_;
};

}  // namespace attest::bound
