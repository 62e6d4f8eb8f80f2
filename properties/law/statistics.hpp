#pragma once
// A statistic whose false-positive rate is a theorem, not a simulation: a sum normalised by its own
// squares. The bound holds for every number of samples, and its proof stands above it.

#include <cstdint>
#include <string>

#include "properties/law/verdict.hpp"

namespace attest::law {

/// Why a law of random roundings is not for a kernel on a matrix unit.
constexpr const char* coarse_steps =
    "steps coarser than what it accumulates in err alike at like scores, and not by chance";
constexpr const char* truncated_sums =
    "sums of a matrix unit are truncated: their errors do not cancel";

/// Z = sum x / sqrt(sum x^2) of terms whose signs are independent and fair given their sizes.
/// Whatever the sizes, P(|Z| > t) <= 2 exp(-t^2 / 2): given them Z is a Rademacher sum of weights w
/// with sum w^2 = 1, E exp(tZ) = prod cosh(t w) <= prod exp(t^2 w^2 / 2) = exp(t^2 / 2), and
/// Chernoff (Efron 1969; Hoeffding 1963). So it needs no model of the variance, and a wrong one
/// costs nothing.
class SelfNormalised {
public:
    void add(double x) noexcept;
    double value() const noexcept;  ///< 0 where every term was 0; NaN where one was NaN or infinite
    std::int64_t samples() const noexcept { return samples_; }

    /// The threshold for a false-positive rate, and the statistic with it.
    static double threshold(double false_positive_rate);
    Statistic statistic(std::string name, double false_positive_rate) const;

private:
    double sum_ = 0, squares_ = 0;
    std::int64_t samples_ = 0;
};

}  // namespace attest::law
