#pragma once
// For tests: a case of a law's campaign, of a kernel that takes all that it declares.

#include "properties/search/capability.hpp"
#include "properties/search/draw.hpp"

namespace attest::search {

/// None where the space is empty for this kernel or the draw was discarded. A discarded or refused
/// draw is followed by the next attempt.
inline std::optional<Case> draw_case(const law::Property& property,
                                     const kernel::Manifest& manifest, const Profile& profile,
                                     std::uint64_t seed, std::int64_t number,
                                     std::int64_t attempt = 0) {
    const Capability capability = declared_capability(manifest);
    return draw({property, capability, profile}, seed, number, attempt);
}

}  // namespace attest::search
