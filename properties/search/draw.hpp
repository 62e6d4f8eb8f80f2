#pragma once
// From raw numbers to a case of a law's space that this kernel can be asked for.

#include <optional>

#include "properties/search/capability.hpp"
#include "properties/search/profile.hpp"

namespace attest::search {

/// A law's space within a kernel's and a profile's limits.
struct DrawSpace {
    const law::Property& property;
    const Capability& capability;
    const Profile& profile;
};

/// The seed of a law's campaign: a hash of the campaign's seed and the law's id.
std::uint64_t law_seed(std::uint64_t campaign_seed, std::string_view law) noexcept;

/// Case `number`, draw `attempt`. None where the draw lies outside the law's precondition.
std::optional<Case> draw(const DrawSpace& space, std::uint64_t seed, std::int64_t number,
                         std::int64_t attempt);

/// The largest size along each axis that some case of the law has where it has cases enough: of
/// what the profile's `reach` names the law and the kernel can follow.
Sizes promised_sizes(const DrawSpace& space);

/// Whether a problem lies in the law's space and within what the kernel declares. Of sizes
/// only the law's own limits count, whatever the profile: stored failures must stay in their space.
bool in_space(const law::Property& property, const Capability& capability, const Problem& problem);

/// Whether the values are of a kind the law is tried on.
bool in_space(const law::Property& property, const Values& values);

/// Whether the law is tried on such a case where the kernel takes everything.
bool in_space(const law::Property& property, const Case& tried);

}  // namespace attest::search
