#pragma once
// What a kernel can be asked for: its manifest, narrowed by what supports() says before the first
// case.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "properties/law/property.hpp"
#include "properties/search/kernel.hpp"
#include "properties/search/probed_numbers.hpp"
#include "properties/search/refused_together.hpp"
#include "properties/search/sizes.hpp"

namespace attest::search {

class FewShapes;

/// The manifest, narrowed.
struct Capability : kernel::Manifest {
    std::int64_t dim_max = 0;  ///< 0: no limit of the kernel's own
    std::int64_t len_max = 0;
    FeatureSet always;  ///< it takes nothing without these
    /// Declared, and refused in their plainest form: not among the features.
    FeatureSet refused;
    std::vector<std::int64_t> dims;  ///< the only head dimensions it takes; empty: any
    /// The only head dimensions it takes where values have another one; empty: any.
    std::vector<std::pair<std::int64_t, std::int64_t>> unequal_dims;
    kernel::NumberLimits found;    ///< what supports() alone told
    std::vector<Sizes> outliers;   ///< sizes it takes, one far beyond the others
    bool narrow() const noexcept;  ///< takes certain shapes alone, or nothing without a feature
    /// The smallest shape that it takes, with groups where they are a feature; `alike`: of as many
    /// queries as keys.
    Problem smallest(bool alike) const;
    /// Lengths of queries and of keys are multiples of these.
    std::int64_t tile_q() const;
    std::int64_t tile_kv() const;
    std::int64_t page_least() const;  ///< 1 where it has no pages
    /// What it takes where gradients are asked for, if that is less.
    std::shared_ptr<const Capability> backward{};
    bool window_right = true;  ///< takes windows that reach past the diagonal
    std::vector<Traits> refused_together;
    std::shared_ptr<const FewShapes> shapes{};   ///< the only ones that are asked for; none: any
    bool refuses(const Problem& problem) const;  ///< as far as those tell
    /// By its numbers and words, those of the manifest and those found.
    bool takes_numbers_of(const Problem& problem) const;
};

/// What a kernel takes of this law's problems.
const Capability& taken_by(const law::Property& property, const Capability& capability) noexcept;

/// What the manifest alone says.
Capability declared_capability(const kernel::Manifest& manifest);

/// The problem with what the kernel takes nothing without, moved to one that it takes.
Problem fitted(Problem problem, const kernel::Manifest& manifest);

/// Asks supports() about one small problem in every format and head dimension, with every feature,
/// in other shapes, and about windows to the right.
/// `narrowed` is told, in sentences for people, what will not be drawn. Where the kernel says no to
/// everything, nothing is narrowed: the refusals are then counted where they happen.
Capability probed_capability(Kernel& kernel, std::vector<std::string>& narrowed);

/// Finds what the kernel refuses when things come together; told in sentences.
std::vector<std::string> learn_refusals(Kernel& kernel, Capability& capability);

/// Of known_outliers(), lengths made multiples of the kernel's tiles: those it takes, asked on
/// variations of a problem that it takes.
std::vector<Sizes> outliers_taken(const Problem& taken, const Capability& capability,
                                  const std::function<bool(const Problem&)>& takes);

/// Whether many a case leaves the law nothing to compare, whatever is drawn: backward returns some
/// gradients alone, or what the kernel declares of its arithmetic claims nothing for many a score.
bool shows_little(const law::Property& property, const kernel::Manifest& manifest) noexcept;

/// Of a profile's cases of each law, how many a kernel of this manifest is asked: fewer where the
/// smallest problem that it takes is large, and no less than a third.
std::int64_t cases_afforded(std::int64_t cases, const kernel::Takes& takes);

/// A kernel of this head dimension alone is the commonest there is: every law is tried on it.
inline constexpr std::int64_t dim_common = 128;

/// Why this law cannot be asked of this kernel, in the kernel's terms; none where it can.
std::optional<std::string> why_not_applicable(const law::Property& property,
                                              const Capability& capability);

/// The formats that a law is tried in: of q its own, of those the kernel takes.
std::vector<kernel::Formats> formats_of(const law::CaseSpace& space, const Capability& capability);

/// The sets of CaseSpace::require_any that the kernel has; one empty set where none is asked for.
std::vector<FeatureSet> alternatives(const law::CaseSpace& space, const Capability& capability);

}  // namespace attest::search
