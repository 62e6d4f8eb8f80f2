#pragma once
// What a step of the backward pass (backward_steps.hpp) is told: a query of one head, a key that it
// sees, and the sums they add to.

#include <cstdint>

#include "kernels/cpu/call.hpp"

namespace attest::cpu {

/// One query of one head, with what it adds to.
template <typename Real>
struct BackRow {
    const Call& call;
    Segment segment;
    std::int64_t head = 0, i = 0;
    const Real* query = nullptr;   ///< rotated, [dim_qk]
    const Real* output = nullptr;  ///< as stored, [dim_v]
    const Real* d_o = nullptr;     ///< [dim_v]
    Real lse = 0, delta = 0;
    Real* d_query = nullptr;  ///< [dim_qk]
};

/// A key that the query sees.
template <typename Real>
struct BackPair {
    const BackRow<Real>& row;
    std::int64_t j = 0;
    const Real* key = nullptr;  ///< rotated
    Real score = 0, capped = 0, probability = 0, dp = 0, ds = 0, factor = 1;
};

/// Sums over queries, of one key head of one segment.
template <typename Real>
struct BackSums {
    Real *d_keys, *d_values;  ///< [keys, dim_qk], [keys, dim_v]
};

}  // namespace attest::cpu
