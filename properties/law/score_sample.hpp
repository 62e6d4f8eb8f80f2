#pragma once
// Numbers that should have variance one, as the sums that a test of it needs.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace attest::law {

/// Numbers read off a kernel, each divided by the standard deviation it should have.
struct ScoreSample {
    double squares = 0;        ///< sum of the squares
    double noise_squares = 0;  ///< sum of the squares of what each may be off by
    double rounding = 0;       ///< relative, of the inputs: 0 for signs
    std::int64_t count = 0;

    double mean() const noexcept { return squares / static_cast<double>(count); }
    /// Independent samples as one.
    void add(const ScoreSample& other) noexcept {
        squares += other.squares;
        noise_squares += other.noise_squares;
        rounding = std::max(rounding, other.rounding);
        count += other.count;
    }
};
using Samples = std::vector<ScoreSample>;

}  // namespace attest::law
