#include "reference/problem/counter.hpp"

namespace attest {

std::uint64_t counter_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
    return counter_mix(counter_start(seed, stream) + (index + 1) * counter_golden);
}

double counter_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
    return static_cast<double>(counter_bits(seed, stream, index) >> 11) * 0x1p-53;
}

}  // namespace attest
