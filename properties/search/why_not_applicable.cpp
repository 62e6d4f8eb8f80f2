// Whether a law can be asked of a kernel at all, by what it declares and takes.

#include <fmt/format.h>

#include <algorithm>

#include "properties/search/capability.hpp"
#include "properties/search/features.hpp"
#include "reference/bound/gradient_structure_bound.hpp"
#include "reference/bound/structure_bound.hpp"

namespace attest::search {

namespace {

/// Why no shape and no set of features that the kernel takes lies in the law's space.
std::optional<std::string> too_narrow(const law::CaseSpace& space, const Capability& capability) {
    FeatureSet own = space.allow | space.require;
    for (const FeatureSet& set : space.require_any) own = own | set;
    if (own.has(Feature::paged)) own = own.with(Feature::cache);
    if (!own.has(Feature::cache)) own = own.without(Feature::ring);
    bool at_odds = !own.contains(capability.always);
    for (int a = 0; a < feature_count; ++a)
        for (int b = 0; b < feature_count; ++b)
            at_odds = at_odds || (capability.always.has(static_cast<Feature>(a)) &&
                                  space.require.has(static_cast<Feature>(b)) &&
                                  !compatible(static_cast<Feature>(a), static_cast<Feature>(b)));
    if (at_odds) return "kernel takes nothing without " + names(capability.always);
    const FeatureSet always = capability.always | space.require;
    for (const Traits set : capability.refused_together)
        if ((always.bits() & set) == set) return "kernel refuses " + said(set);
    if (space.len_q_one && !capability.found[kernel::Quantity::len_q].has(1))
        return "kernel takes no single query";
    // A law's calls may be as many as its queries; of those of few calls a longer one is afforded.
    constexpr std::int64_t scores_any = 65536, scores_cheap = 1 << 20, calls_cheap = 4;
    const bool alike = space.square || counts_alike(always, capability.takes);
    const Problem smallest = capability.smallest(alike);
    if (alike && !(capability.takes[kernel::Quantity::len_q].has(smallest.len_q) &&
                   capability.takes[kernel::Quantity::len_kv].has(smallest.len_kv)))
        return "kernel takes no call of as many queries as keys";
    const std::int64_t least = score_count(smallest);
    if (const std::int64_t most = space.cost <= calls_cheap ? scores_cheap : scores_any;
        least > most)
        return fmt::format("the law affords {} scores a case; the kernel takes no fewer than {}",
                           most, least);
    // A law whose limit is of channels makes problems that grow with them: twice its own word is
    // eight times the cost where that is a cube.
    if (space.dim_max > 0 && !capability.dims.empty() &&
        capability.dims.front() > 2 * std::max(space.dim_max, dim_common))
        return "the smallest head dimension that the kernel takes is too large for it";
    return std::nullopt;
}

bool declares_structure(const law::Property& law, const Capability& capability) {
    const auto taken = formats_of(law.cases, capability);
    return std::ranges::any_of(taken, [&](const kernel::Formats& formats) {
        Problem problem;
        problem.format_q = formats.q;
        problem.format_kv = formats.kv;
        problem.format_o = formats.o;
        if (law.needs.backward)
            return bound::gradient_structure_declared(problem, capability.numerics);
        return bound::structure_declared(bound::resolve(problem, capability.numerics), 1);
    });
}

}  // namespace

std::optional<std::string> why_not_applicable(const law::Property& property,
                                              const Capability& all) {
    const Capability& capability = taken_by(property, all);
    const law::Needs& needs = property.needs;
    if (needs.backward && all.gradients.empty()) return "kernel has no backward";
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
    if (needs.backward && capability.gradients.empty())
        return gradients_unjudged(capability.numerics) ? coarse_gradients
                                                       : "kernel refuses declared gradients";
    for (const auto& [needed, role] :
         {std::pair{needs.d_q, Role::d_q}, {needs.d_k, Role::d_k}, {needs.d_v, Role::d_v}})
        if (needed && std::ranges::find(capability.gradients, role) == capability.gradients.end())
            return "kernel returns no " + std::string(name(role));
    const Numerics& claims = capability.numerics;
    if (needs.deterministic &&
        !(needs.backward ? claims.deterministic_backward : claims.deterministic))
        return "kernel does not claim to be deterministic";
    if (needs.batch_invariant && !capability.numerics.batch_invariant)
        return "kernel does not claim batch invariance";
    if (needs.concurrent && !capability.numerics.concurrent)
        return "kernel does not claim that several threads may call it at once";
    if (needs.concurrent && (capability.simulated || capability.memory != kernel::Memory::host))
        return "two threads call no kernel of simulated threads or device memory here";
    if (needs.structure && !declares_structure(property, capability))
        return needs.backward ? "kernel declares no structure of its gradients, or nothing rounded"
                              : "kernel declares no tile, or weights that no format rounds";
    if (needs.simulated && !capability.simulated)
        return "its threads run under no schedule that attest could choose";
    // Of such kernels a call takes milliseconds, however small it is.
    constexpr std::int64_t cost_simulated_max = 128;
    if (capability.simulated && property.cases.cost > cost_simulated_max)
        return "so many calls of simulated threads would take minutes";
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
