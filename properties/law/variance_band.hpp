#pragma once
// Where the mean square of scores of variance one lies, but for a stated rate.

#include <cstdint>

namespace attest::law {

/// Scores read off a kernel, each divided by the standard deviation it should have.
struct ScoreSample {
    double squares = 0;        ///< sum of the squares
    double noise_squares = 0;  ///< sum of the squares of what each may be off by
    double rounding = 0;       ///< relative, of the inputs: 0 for signs
    std::int64_t count = 0;

    double mean() const noexcept { return squares / static_cast<double>(count); }
};

/// The mean square lies in [low, high] but for the false-positive rate.
struct VarianceBand {
    double low = 0, high = 0;
};

VarianceBand band_of(const ScoreSample& sample, double rate);

}  // namespace attest::law
