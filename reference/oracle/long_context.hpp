#pragma once
// The oracle where there are more scores than it can afford: sampled rows, or every row where the
// keys are copies of few. Memory stays O(length x dimension).

#include <cstdint>

#include "reference/oracle/oracle.hpp"

namespace attest::oracle {

/// As attend() where that takes at most `products_max` multiplications. Beyond, every row where
/// attend_collapsed() knows how; else every row, or as many as it can afford, on the GPU that is in
/// use (device_oracle.hpp); else some rows (Expected::rows): the first, the last, and others drawn
/// by the seed, in order.
bound::Expected attend_affordable(const Problem& problem, const Dialect& dialect,
                                  const Numerics& numerics, const TensorSet& inputs,
                                  double products_max, std::uint64_t seed);

}  // namespace attest::oracle
