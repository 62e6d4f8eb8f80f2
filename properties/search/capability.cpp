#include "properties/search/capability.hpp"

#include <algorithm>

#include "properties/search/features.hpp"
#include "properties/search/landmarks.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

Capability declared_capability(const kernel::Manifest& manifest) {
    Capability capability;
    capability.formats = manifest.formats;
    capability.features = manifest.features;
    capability.simulated = manifest.simulated;
    capability.dialect = manifest.dialect;
    capability.numerics = manifest.numerics;
    capability.dim_max = manifest.limits.dim_max;
    capability.len_max = manifest.limits.len_max;
    return capability;
}

std::vector<Precision> formats_of(const law::CaseSpace& space, const Capability& capability) {
    std::vector<Precision> had = capability.formats;
    std::erase_if(had, [&](Precision format) {
        return !space.formats.empty() &&
               std::find(space.formats.begin(), space.formats.end(), format) == space.formats.end();
    });
    return had;
}

std::vector<FeatureSet> alternatives(const law::CaseSpace& space, const Capability& capability) {
    if (space.require_any.empty()) return {FeatureSet{}};
    std::vector<FeatureSet> had;
    for (const FeatureSet& set : space.require_any)
        if (capability.features.contains(set)) had.push_back(set);
    return had;
}

bool Capability::narrow() const noexcept {
    return always != FeatureSet{} || !dims.empty() || !geometry.any();
}

namespace {

/// Why no shape and no set of features that the kernel takes lies in the law's space.
std::optional<std::string> too_narrow(const law::CaseSpace& space, const Capability& capability) {
    FeatureSet own = space.allow | space.require;
    for (const FeatureSet& set : space.require_any) own = own | set;
    if (own.has(Feature::paged)) own = own.with(Feature::cache);
    bool at_odds = !own.contains(capability.always);
    for (int a = 0; a < feature_count; ++a)
        for (int b = 0; b < feature_count; ++b)
            at_odds = at_odds || (capability.always.has(static_cast<Feature>(a)) &&
                                  space.require.has(static_cast<Feature>(b)) &&
                                  !compatible(static_cast<Feature>(a), static_cast<Feature>(b)));
    if (at_odds) return "kernel takes nothing without " + names(capability.always);
    const Geometry& g = capability.geometry;
    if (space.len_q_one && !g.len_q.has(1)) return "kernel takes no single query";
    constexpr std::int64_t scores_most = 65536;  // a law's calls may be as many as its queries
    if (g.least_scores() > scores_most)
        return "the smallest problem that the kernel takes is too large for it";
    return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_applicable(const law::Property& property,
                                              const Capability& capability) {
    const law::Needs& needs = property.needs;
    if (needs.backward) return "kernel has no backward";
    if (needs.deterministic && !capability.numerics.deterministic)
        return "kernel does not claim to be deterministic";
    if (needs.batch_invariant && !capability.numerics.batch_invariant)
        return "kernel does not claim batch invariance";
    if (needs.simulated && !capability.simulated)
        return "its threads run under no schedule that attest could choose";
    const law::CaseSpace& space = property.cases;
    FeatureSet missing;
    for (int bit = 0; bit < feature_count; ++bit) {
        const auto feature = static_cast<Feature>(bit);
        if (space.require.has(feature) && !capability.features.has(feature))
            missing = missing.with(feature);
    }
    if (missing != FeatureSet{})
        return (capability.refused.contains(missing) ? "kernel declares and refuses "
                                                     : "kernel does not declare ") +
               names(missing);
    if (alternatives(space, capability).empty()) {
        std::string sets;
        for (const FeatureSet& set : space.require_any)
            sets += (sets.empty() ? "" : ", ") + names(set, " with ");
        return "kernel takes none of: " + sets;
    }
    if (needs.lse && !capability.features.has(Feature::lse)) return "kernel returns no log-sum-exp";
    if (capability.formats.empty()) return "kernel declares no format";
    if (formats_of(space, capability).empty()) {
        std::string list;
        for (const Precision format : space.formats)
            list += (list.empty() ? "" : ", ") + std::string(name(format));
        return "kernel takes none of " + list;
    }
    return too_narrow(space, capability);
}

}  // namespace attest::search
