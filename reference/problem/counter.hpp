#pragma once
// Random numbers by position instead of by state: element i of a stream is a hash of (seed, stream,
// i) alone, and reals made from it. The same on every machine, and shrinking one length leaves
// every other value alone.

#include <cstdint>
#include <span>

namespace attest {

std::uint64_t counter_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept;
/// In [0, 1).
double counter_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept;
/// Of mean 0 and variance 1.
double counter_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept;
/// Those of `first` and the indices behind it.
void counter_normals(std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
                     std::span<double> out) noexcept;

// What both of their forms, one at a time and in vectors, are made of: bits of (seed, stream, i)
// are mix(start(seed, stream) + (i + 1) golden).

inline constexpr std::uint64_t counter_golden = 0x9e3779b97f4a7c15;  ///< 2^64 / phi
inline constexpr std::uint64_t counter_factors[] = {0xbf58476d1ce4e5b9, 0x94d049bb133111eb};

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014; Stafford's mix 13): a bijection.
constexpr std::uint64_t counter_mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * counter_factors[0];
    z = (z ^ (z >> 27)) * counter_factors[1];
    return z ^ (z >> 31);
}
constexpr std::uint64_t counter_start(std::uint64_t seed, std::uint64_t stream) noexcept {
    return counter_mix(counter_mix(seed + counter_golden) ^
                       counter_mix(stream * counter_golden + 1));
}

}  // namespace attest
