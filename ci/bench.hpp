#pragma once
// `attest bench oracle`: the oracle measured against itself, in one table.

#include <cstdint>

namespace attest::ci {

/// Certified errors against 50 digits, bounds against correct kernels forward and backward, and how
/// often wider arithmetic is needed; prints as it goes. Returns how often something that is proven
/// not to happen did.
std::int64_t bench_bounds(double seconds, std::uint64_t seed);

/// What each arithmetic costs, beside plain attention in the same run.
void bench_speed();

}  // namespace attest::ci
