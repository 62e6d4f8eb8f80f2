#pragma once
// Which optional features a case has. A few at a time, so that a failure points somewhere; and
// every pair in turn, because features break each other.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/interface/manifest.hpp"
#include "properties/law/property.hpp"
#include "reference/problem/feature.hpp"

namespace attest::search {

/// "causal, window"
std::string names(FeatureSet set, const char* separator = ", ");

/// Whether one problem can have both. Not in one problem: the two kinds of mask tensor; documents
/// with a cache or with lengths; a page without a cache is a cache.
bool compatible(Feature a, Feature b) noexcept;

/// With those that these come with: pages, rings and rotated keys are a cache's, and a ring has a
/// window.
FeatureSet with_needed(FeatureSet set) noexcept;

/// Features that shape tensors rather than change what is computed. They are drawn by chance, each
/// on its own; the others by turns.
FeatureSet structural_features() noexcept;

/// Whether such problems have as many queries as keys: positions beside no cache, sequences padded
/// to the right.
bool counts_alike(FeatureSet features, const kernel::Takes& takes) noexcept;

/// The features that change what is computed for slot t of a law: none, one, two or three of
/// `optional` beside `base`, which is always kept. Over the slots every compatible pair comes in
/// turn; `start` lets laws begin at different pairs.
FeatureSet planned_features(FeatureSet base, FeatureSet optional, std::int64_t t,
                            std::uint64_t start);

/// Sets the fields that need nothing but their feature: a flag to whether it is there, a number
/// that the table of fields lists values for to one of them, by the next of `picks` (0 where they
/// end).
void set_plain_fields(Problem& problem, FeatureSet features, std::span<const std::int64_t> picks);

/// The problem with this feature in its plainest form; none where that needs what is not there (a
/// second format). For asking supports().
std::optional<Problem> with_plain_feature(Problem problem, Feature feature,
                                          const std::vector<kernel::Formats>& formats);

}  // namespace attest::search
