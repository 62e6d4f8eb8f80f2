#include "properties/search/capability.hpp"

#include <algorithm>

#include "properties/search/features.hpp"
#include "properties/search/landmarks.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

const Capability& taken_by(const law::Property& property, const Capability& capability) noexcept {
    const bool less = property.needs.backward && capability.backward != nullptr;
    return less ? *capability.backward : capability;
}

Capability declared_capability(const kernel::Manifest& manifest) {
    Capability capability;
    capability.formats = manifest.formats;
    capability.features = manifest.features;
    capability.simulated = manifest.simulated;
    capability.gradients = !manifest.gradients.empty();
    capability.dialect = manifest.dialect;
    capability.numerics = manifest.numerics;
    capability.dim_max = manifest.limits.dim_max;
    capability.len_max = manifest.limits.len_max;
    Problem plain;
    plain.len_q = plain.len_kv = 64;
    capability.outliers = outliers_taken(plain, capability, [](const Problem&) { return true; });
    return capability;
}

namespace {

bool has_features(const Sizes& sizes, FeatureSet features) {
    using enum SizeAxis;
    const bool grouped = sizes[heads_q] != sizes[heads_kv];
    const bool other_values = sizes[dim_v] > 0 && sizes[dim_v] != sizes[dim_qk];
    return (!grouped || features.has(Feature::gqa)) &&
           (!other_values || features.has(Feature::dim_v)) &&
           (sizes[documents] == 0 || features.has(Feature::documents));
}

/// Lengths to the next whole tile, and to each other where one follows from the other.
Sizes in_tiles(Sizes sizes, const Geometry& geometry, bool cached) {
    std::int64_t &queries = sizes[SizeAxis::len_q], &keys = sizes[SizeAxis::len_kv];
    const bool alike = geometry.queries == Queries::as_keys;
    const bool fewer = cached || geometry.queries == Queries::at_most_keys;
    if (alike || (fewer && queries > keys)) keys = std::max(queries, keys);
    if (alike) queries = keys;
    const auto up = [](std::int64_t len, std::int64_t multiple) {
        return (len + multiple - 1) / multiple * multiple;
    };
    queries = up(queries, geometry.len_q.multiple);
    keys = up(keys, geometry.len_kv.multiple);
    return sizes;
}

bool within_limits(const Problem& p, const Capability& capability) {
    const auto within = [](std::int64_t size, std::int64_t most) {
        return most == 0 || size <= most;
    };
    return within(std::max(p.dim_qk, value_dim(p)), capability.dim_max) &&
           within(std::max(p.len_q, p.len_kv), capability.len_max) &&
           takes_shape(capability.geometry, p);
}

}  // namespace

std::vector<Sizes> outliers_taken(const Problem& taken, const Capability& capability,
                                  const std::function<bool(const Problem&)>& takes) {
    std::vector<Sizes> list;
    for (const Sizes& known : known_outliers()) {
        const Sizes sizes = in_tiles(known, capability.geometry, taken.cache.present);
        if (!has_features(sizes, capability.features) ||
            std::find(list.begin(), list.end(), sizes) != list.end())
            continue;
        const std::optional<Problem> problem = stretched(taken, sizes);
        if (problem && within_limits(*problem, capability) && takes(*problem))
            list.push_back(sizes);
    }
    return list;
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

/// A kernel of this head dimension alone is the commonest there is: every law is tried on it.
constexpr std::int64_t dim_common = 128;

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
    // A law whose limit is of channels makes problems that grow with them: twice its own word is
    // eight times the cost where that is a cube.
    if (space.dim_max > 0 && !capability.dims.empty() &&
        capability.dims.front() > 2 * std::max(space.dim_max, dim_common))
        return "the smallest head dimension that the kernel takes is too large for it";
    return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_applicable(const law::Property& property,
                                              const Capability& all) {
    const Capability& capability = taken_by(property, all);
    const law::Needs& needs = property.needs;
    if (needs.backward && !capability.gradients) return "kernel has no backward";
    const Numerics& claims = capability.numerics;
    if (needs.deterministic &&
        !(needs.backward ? claims.deterministic_backward : claims.deterministic))
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
