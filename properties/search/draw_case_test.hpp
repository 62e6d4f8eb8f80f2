#pragma once
// For tests: cases of a law's campaign, of a kernel that takes all that it declares.

#include <algorithm>
#include <vector>

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

inline std::vector<Case> draws(const law::Property& law, const kernel::Manifest& manifest,
                               std::int64_t count, std::uint64_t seed = 1) {
    std::vector<Case> cases;
    for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t attempt = 0; attempt < 16; ++attempt)
            if (auto c = draw_case(law, manifest, Profile{}, seed, k, attempt)) {
                cases.push_back(std::move(*c));
                break;
            }
    return cases;
}

template <typename Predicate>
double share(const std::vector<Case>& cases, Predicate predicate) {
    const auto count = std::count_if(cases.begin(), cases.end(),
                                     [&](const Case& c) { return predicate(c.problem); });
    return static_cast<double>(count) / static_cast<double>(cases.size());
}

}  // namespace attest::search
