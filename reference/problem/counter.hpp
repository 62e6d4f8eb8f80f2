#pragma once
// Random numbers by position: a 64-bit hash of (seed, stream, index), and reals made from it. The
// same on every machine, and shrinking one length leaves every other value alone.

#include <cstdint>

namespace attest {

std::uint64_t counter_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept;
/// In [0, 1).
double counter_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept;
/// Of mean 0 and variance 1.
double counter_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept;

}  // namespace attest
