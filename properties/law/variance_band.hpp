#pragma once
// Where the mean square of scores of variance one lies, but for a stated rate.

#include <cstdint>

namespace attest::law {

/// Of one case, both tails together.
constexpr double variance_rate = 1e-9;

/// Scores read off a kernel, each divided by the standard deviation it should have.
struct ScoreSample {
    double squares = 0;        ///< sum of the squares
    double noise_squares = 0;  ///< sum of the squares of what each may be off by
    double rounding = 0;       ///< relative, of the inputs: 0 for signs
    std::int64_t count = 0;
    bool bounded = true;  ///< false: some score was known from above alone, its square from below
    bool usable = true;   ///< false: nothing is known of some score
};

/// The mean square lies in [low, high] but for the false positive rate.
struct VarianceBand {
    double low = 0, high = 0;
};

VarianceBand band_of(const ScoreSample& sample);

}  // namespace attest::law
