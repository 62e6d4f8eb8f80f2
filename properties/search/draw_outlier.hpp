#pragma once
// The cases of every run that have one size far beyond the others: which, when, and how a draw is
// made one of them. A fixed schedule, as features have their turns: nothing is left to luck.

#include <optional>

#include "properties/search/draw.hpp"
#include "properties/search/raw_draw.hpp"

namespace attest::search {

/// What a law's case must have, and what it may have.
struct OfferedFeatures {
    FeatureSet required, drawable;
};

/// The place of a case: the t-th of one of `formats` formats.
struct DrawSlot {
    std::int64_t format, t, formats;
};

/// What of the kernel's outliers the law can follow and the profile reaches.
std::vector<Sizes> outliers_of(const DrawSpace& space, const OfferedFeatures& offered);

/// What this case is stretched by; none for most. `start` tells laws apart. The largest of each
/// axis come first.
std::optional<Sizes> outlier_for(const DrawSpace& space, const OfferedFeatures& offered,
                                 const DrawSlot& slot, std::uint64_t start);

/// The features as they are without what would hide most of an outlier, with what it needs; and by
/// the chances that were drawn, those that have a path of their own at some sizes.
FeatureSet features_beside(const Sizes& outlier, FeatureSet features,
                           const OfferedFeatures& offered, const Raw& raw,
                           const Capability& capability);

/// Numbers small but for the outlier's. `limits` are those of any case of the law, `least` is the
/// smallest shape that the kernel takes of such cases.
RawLimits limits_beside(const Sizes& outlier, RawLimits limits);
void stretch(Raw& raw, const Sizes& outlier, const Problem& least, const Profile& profile);

}  // namespace attest::search
