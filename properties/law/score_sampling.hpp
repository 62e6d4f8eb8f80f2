#pragma once
// Scores sampled from a kernel: inputs with known moments are drawn, the scores read off the
// weights and their mean square tested. The test is sequential: a mean near the middle of its band
// ends it, any other asks for four times the sample, up to 65536 scores, where a scale that is 3 %
// off stands out. It is exact for every sample size: a correct kernel fails a case with probability
// 1e-9 at most.

#include <cstdint>
#include <string>
#include <vector>

#include "properties/law/property.hpp"
#include "properties/law/trial.hpp"
#include "properties/law/variance_band.hpp"

namespace attest::law {

/// One head dimension's scores. Every element of Q and of K is a random sign or a normal number
/// times 2^-exponent; `deviation`: the standard deviation that this gives the scores.
struct Sampling {
    Problem problem;
    bool signs = true;
    int exponent = 0;
    double deviation = 1;
    std::uint64_t stream = 0;
};

/// One query a head and 64 keys, one of them zero; enough sequences to make about 256 samples.
Problem sampling_problem(const Problem& from, std::int64_t dim);

/// A number that is one, estimated from samples: in [low, high] but for the rate asked for.
struct Estimate {
    double value = 1, low = 0, high = 0;

    bool within() const noexcept { return value >= low && value <= high; }
    /// In the middle fifth: a wrong scale that a larger sample would show is seldom found there, a
    /// right one is in five cases of six.
    bool settled() const noexcept {
        return value >= 1 - (1 - low) / 5 && value <= 1 + (high - 1) / 5;
    }
    double room() const noexcept { return value < 1 ? 1 - low : high - 1; }
};

Estimate variance_of(const Samples& samples, double rate);  ///< of the first
Estimate drift_of(const Samples& samples, double rate);     ///< of the second over the first

/// What a law estimates, of one dimension or of two, and how it says that it is wrong.
struct Sought {
    std::vector<Sampling> samplings;  ///< the kernel takes each
    Estimate (*estimate)(const Samples&, double rate) = variance_of;
    double unit = 1;  ///< the estimate is told in units of this
    const char* name = "";
    std::string (*sentence)(const Sought&, const Samples&) = nullptr;
};

Plan estimated(const Given& given, Sought sought);

/// The first call's samples of all cases as one, of an estimate. They are independent, and how many
/// there are does not depend on what the kernel answers: the band is as sharp as their number.
Pooled pooled_variance(const Samples& all);
Pooled pooled_drift(const Samples& all);

}  // namespace attest::law
