#pragma once
// Score tests (reference/bound/README.md): whether the errors of many independent samples lean in a
// direction in which wrong kernels err.

#include <cstdint>
#include <span>
#include <string>

#include "properties/law/statistics.hpp"
#include "properties/law/verdict.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::law {

/// Errors added up along one direction. A sample is a row or a head: what is independent of others.
class DirectionSum {
public:
    /// An element of the sample: its error and the direction there, both over the element's scale.
    void add(double error, double direction);
    void end_sample();

    const SelfNormalised& samples() const { return samples_; }
    double square() const { return square_; }  ///< of the direction over all elements
    /// How far the errors lean, in units of the direction.
    double drift() const { return square_ > 0 ? along_ / square_ : 0; }

private:
    SelfNormalised samples_;
    double sample_ = 0, along_ = 0, square_ = 0;
};

struct TestedDirection {
    std::string words;  ///< with {:.2g} for the drift
    Role tensor = Role::o;
    DirectionSum sum{};
    double admitted = 0;  ///< a drift that the declared numerics may have in a whole run
};

/// Suspect where a direction stands out that drifts by more than is admitted; of such the one that
/// stands out most.
Judgement judge_directions(std::span<const TestedDirection> directions, std::string statistic,
                           std::int64_t elements);

/// Why errors lean by design, so that the test is not for such a kernel; nullptr where they do not.
const char* leaning_by_design(const Numerics& numerics) noexcept;

/// The problem as a dense one of at least 100 heads.
Problem many_heads(const Problem& problem, std::int64_t queries);

}  // namespace attest::law
