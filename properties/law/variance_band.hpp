#pragma once
// Where the mean square of scores of variance one lies, but for a stated rate.

#include "properties/law/verdict.hpp"

namespace attest::law {

/// The mean square lies in [low, high] but for the false-positive rate.
struct VarianceBand {
    double low = 0, high = 0;
};

VarianceBand band_of(const ScoreSample& sample, double rate);

}  // namespace attest::law
