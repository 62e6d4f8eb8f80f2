#pragma once
// For tests: a draw for what a manifest alone says of a kernel.

#include "properties/search/draw.hpp"

namespace attest::testing {

inline std::optional<Case> draw_case(const Property& law, const Manifest& manifest,
                                     const Profile& profile, std::uint64_t seed,
                                     std::int64_t number, std::int64_t attempt = 0) {
    const Capability capability = declared_capability(manifest);
    return draw({law, capability, profile}, seed, number, attempt);
}

}  // namespace attest::testing
