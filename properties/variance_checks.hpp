#pragma once
// The checks of the variance laws: the statistics and their proofs.

#include <cstdint>

#include "properties/law/trial.hpp"
#include "properties/law/verdict.hpp"

namespace attest::laws {

/// Of one case, both tails together.
constexpr double false_positive_rate = 1e-9;

/// Scores read off a kernel, each divided by the standard deviation it should have.
struct Sample {
    double squares = 0;        ///< sum of the squares
    double noise_squares = 0;  ///< sum of the squares of what each may be off by
    double rounding = 0;       ///< relative, of the inputs: 0 for signs
    std::int64_t count = 0;
    bool bounded = true;  ///< false: some score was known from above alone, its square from below
    bool usable = true;   ///< false: nothing is known of some score
};

/// The mean square lies in [low, high] but for the false positive rate.
struct Band {
    double low = 0, high = 0;
};

Band band_of(const Sample& sample);

Verdict check_scaled(const Trial& trial);
Verdict check_unscaled(const Trial& trial);
Verdict check_dimension_free(const Trial& trial);

}  // namespace attest::laws
