#pragma once
// The derivation's two halves: lengths, heads and dimensions that fit; then the features.

#include "kernels/interface/manifest.hpp"
#include "properties/search/draw.hpp"
#include "properties/search/probed_numbers.hpp"
#include "properties/search/raw_draw.hpp"

namespace attest::search {

/// The features of a case that need care while shapes are chosen.
struct ShapePlan {
    FeatureSet features;
    std::int64_t scores_max = 1, len_max = 1;
    bool len_q_one = false, square = false, more_queries = false;
    /// scores x channels of a case stay below this, so that a campaign is many cases and not a few
    /// large ones.
    std::int64_t work_max = 1;
    kernel::NumberLimits found{};  ///< beyond what the manifest says
    kernel::Takes takes{};
    std::int64_t dim_least = 1;            ///< the smallest head dimension there is
    std::int64_t tile_q = 1, tile_kv = 1;  ///< lengths are multiples of these
    std::int64_t scores_least = 1;         ///< scores of the smallest problem that the kernel takes
};

/// Sets batch, heads, lengths and dimensions. Scores stay within the plan's, len_q equals len_kv
/// where the features need it, a cache has at least as many keys as queries, and the kernel takes
/// the shape.
void derive_shape(Problem& problem, const Raw& raw, const ShapePlan& plan);

/// Sets what the features ask for, on a problem whose shape stands.
void derive_features(Problem& problem, const Raw& raw, FeatureSet features,
                     const std::vector<kernel::Formats>& formats);

/// Gives up what the kernel has said it does not take and no feature has a name for.
void fit(Problem& problem, const Capability& capability);

/// In four cases of five, where there is a cache, lengths or a window: moves where it ends to the
/// edge of a page, a tile or a split, or one key to its side. For problems that are otherwise done;
/// leaves one alone where the kernel takes no such shape.
void meet_an_edge(Problem& problem, const Raw& raw, const Capability& capability);

/// Of what may hide a key, the causal mask alone; windows apart.
bool only_causal_hides(FeatureSet set);

/// Without what allows no more queries than keys: a cache, and ALiBi, which has as many without
/// one.
FeatureSet beside_more_queries(FeatureSet set, FeatureSet required);

}  // namespace attest::search
