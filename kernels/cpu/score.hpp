#pragma once
// From a dot product to a score: S = cap(scale q.k) + bias, with the bias from an additive mask and
// ALiBi, and whether a mask tensor hides the key.

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/call.hpp"

namespace attest::cpu {

/// tanh is taken in double or wider, so that a soft cap costs one rounding of the accumulate format
/// and not the few ulps of a float tanh.
template <typename Real>
Real soft_capped(Real score, double cap) noexcept {
    if (cap == 0) return score;
    const auto limit = static_cast<double>(static_cast<Real>(cap));
    return static_cast<Real>(limit * std::tanh(static_cast<double>(score) / limit));
}

template <typename Real>
struct Bias {
    Real value = 0;
    bool hidden = false;
};

/// How far query i stands from key j, both counted within the segment.
inline std::int64_t distance_of(const Segment& s, std::int64_t i, std::int64_t j) noexcept {
    return std::abs(i + s.offset - j);
}

/// Query i and key j count within the segment.
template <typename Real>
Bias<Real> bias_at(const Call& call, const Segment& s, std::int64_t head, std::int64_t i,
                   std::int64_t j) noexcept {
    Bias<Real> bias;
    if (call.problem.mask_kind == ATTEST_MASK_BOOL) {
        bias.hidden = *call.mask.at(s.batch, head, s.query0 + i, s.key0 + j) == std::byte{0};
    } else if (call.problem.mask_kind == ATTEST_MASK_ADDITIVE) {
        load_row(call.mask.at(s.batch, head, s.query0 + i, s.key0 + j), call.mask.format, 1, 1,
                 &bias.value);
        bias.hidden = bias.value == -std::numeric_limits<Real>::infinity();
    }
    if (call.problem.alibi != 0) {
        bias.value -= static_cast<Real>(call.alibi_slopes.real(head)) *
                      static_cast<Real>(distance_of(s, i, j));
    }
    return bias;
}

/// The larger of two scores; NaN where either is.
template <typename Real>
Real larger(Real a, Real b) noexcept {
    return a > b || a != a ? a : b;
}

}  // namespace attest::cpu
