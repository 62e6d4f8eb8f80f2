#pragma once
// Random small problems that use every feature the oracle knows, for its tests and its
// measurements.

#include <cstdint>

#include "reference/problem/case.hpp"
#include "reference/problem/dialect.hpp"

namespace attest::oracle {

struct RandomCase {
    Case tried;
    Dialect dialect;
};

/// Case `number` of a fixed sequence. len_max and dim_max bound the sizes.
RandomCase random_case(std::uint64_t number, std::int64_t len_max, std::int64_t dim_max);

/// The same with gradients wanted.
RandomCase random_gradient_case(std::uint64_t number, std::int64_t len_max, std::int64_t dim_max);

}  // namespace attest::oracle
