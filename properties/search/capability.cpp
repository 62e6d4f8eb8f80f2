#include "properties/search/capability.hpp"

#include <algorithm>
#include <numeric>

#include "properties/law/reading.hpp"
#include "properties/search/features.hpp"
#include "properties/search/landmarks.hpp"
#include "reference/problem/errors.hpp"

namespace attest::search {

const Capability& taken_by(const law::Property& property, const Capability& capability) noexcept {
    const bool less = property.needs.backward && capability.backward != nullptr;
    return less ? *capability.backward : capability;
}

namespace {

/// A multiple of nearly every tile.
constexpr std::int64_t tokens = 64;

bool has_features(const Sizes& sizes, FeatureSet features) {
    using enum SizeAxis;
    const bool grouped = sizes[heads_q] != sizes[heads_kv];
    const bool other_values = sizes[dim_v] > 0 && sizes[dim_v] != sizes[dim_qk];
    return (!grouped || features.has(Feature::gqa)) &&
           (!other_values || features.has(Feature::dim_v)) &&
           (sizes[documents] == 0 || features.has(Feature::documents));
}

/// To the next number that is taken, where one is as large, or nearly.
void move_to_taken(std::int64_t& size, const kernel::NumberSet& numbers, std::int64_t multiple) {
    const std::int64_t known = size;
    size = (size + multiple - 1) / multiple * multiple;
    if (size == 0 || numbers.has(size)) return;
    if (const std::int64_t near = numbers.nearest(size); 2 * near > known) size = near;
}

/// Lengths to the next whole tile, and to each other where one follows from the other; each size to
/// one that is taken.
Sizes in_tiles(Sizes sizes, const Capability& capability, bool cached) {
    using enum kernel::Quantity;
    using kernel::Queries;
    const kernel::Takes& takes = capability.takes;
    std::int64_t &queries = sizes[SizeAxis::len_q], &keys = sizes[SizeAxis::len_kv];
    const Queries relation = std::max(capability.found.queries, takes.queries);
    const bool alike = relation == Queries::as_keys;
    const bool fewer = cached || relation == Queries::at_most_keys;
    if (alike || (fewer && queries > keys)) keys = std::max(queries, keys);
    if (alike) queries = keys;
    const std::int64_t of_queries = capability.tile_q(), of_keys = capability.tile_kv();
    const std::int64_t of_both = std::lcm(of_queries, of_keys);
    move_to_taken(queries, takes[len_q], alike ? of_both : of_queries);
    move_to_taken(keys, takes[len_kv], alike ? of_both : of_keys);
    move_to_taken(sizes[SizeAxis::batch], takes[batch], 1);
    move_to_taken(sizes[SizeAxis::dim_qk], takes[dim_qk], takes[dim_qk].multiple);
    move_to_taken(sizes[SizeAxis::dim_v], takes[dim_v], takes[dim_v].multiple);
    return sizes;
}

bool within_limits(const Problem& p, const Capability& capability) {
    const auto within = [](std::int64_t size, std::int64_t most) {
        return most == 0 || size <= most;
    };
    return within(std::max(p.dim_qk, value_dim(p)), capability.dim_max) &&
           within(std::max(p.len_q, p.len_kv), capability.len_max) &&
           capability.takes_numbers_of(p);
}

/// The numbers of a manifest's list; of a range, and of what was found by asking, the largest.
std::vector<std::int64_t> largest_of(const kernel::NumberSet& numbers, std::int64_t asked) {
    if (!numbers.only.empty()) return numbers.only;
    const std::int64_t most = numbers.most.value_or(asked);
    if (most == 0) return {};
    return {numbers.nearest(asked > 0 ? std::min(asked, most) : most)};
}

/// The kernel's own limits: the large head dimensions and every number of sequences, heads and
/// tokens of its lists, and the largest of its ranges. Few cases would be drawn with them, and what
/// goes wrong there alone is met nowhere else.
std::vector<Sizes> own_outliers(const Capability& capability) {
    using enum kernel::Quantity;
    const kernel::Takes& takes = capability.takes;
    std::vector<Sizes> list;
    const auto add = [&](SizeAxis axis, const kernel::NumberSet& numbers, std::int64_t asked) {
        const bool dims = axis == SizeAxis::dim_qk || axis == SizeAxis::dim_v;
        const std::int64_t common = dims ? dim_common : 1;
        for (const std::int64_t n : largest_of(numbers, asked))
            if (n > common) list.push_back({{axis, n}});
    };
    add(SizeAxis::dim_qk, takes[dim_qk], 0);
    add(SizeAxis::dim_v, takes[dim_v], 0);
    add(SizeAxis::batch, takes[batch], 0);
    add(SizeAxis::len_q, takes[len_q], capability.found[len_q].most.value_or(0));
    add(SizeAxis::len_kv, takes[len_kv], capability.found[len_kv].most.value_or(0));
    for (const std::int64_t n : largest_of(takes[heads_kv], 0))
        if (n > 1)
            list.push_back(
                {{SizeAxis::heads_q, n * takes[group].nearest(1)}, {SizeAxis::heads_kv, n}});
    for (const kernel::DimPair& pair : takes.dims)
        if (std::max(pair.qk, pair.v) > dim_common)
            list.push_back({{SizeAxis::dim_qk, pair.qk}, {SizeAxis::dim_v, pair.v}});
    return list;
}

}  // namespace

std::vector<Sizes> outliers_taken(const Problem& taken, const Capability& capability,
                                  const std::function<bool(const Problem&)>& takes) {
    std::vector<Sizes> list;
    const auto add = [&](const Sizes& wanted, std::int64_t products_max) {
        const Sizes sizes = in_tiles(wanted, capability, taken.cache.present);
        if (!has_features(sizes, capability.features) ||
            (capability.simulated && least_products(sizes) > products_max) ||
            std::find(list.begin(), list.end(), sizes) != list.end())
            return;
        const std::optional<Problem> problem = stretched(taken, sizes);
        if (problem && within_limits(*problem, capability) && takes(*problem))
            list.push_back(sizes);
    };
    for (const Sizes& sizes : known_outliers()) add(sizes, simulated_products_max);
    for (const Sizes& sizes : own_outliers(capability)) add(sizes, simulated_products_of_one);
    return list;
}

Problem fitted(Problem problem, const kernel::Manifest& manifest) {
    kernel::fit(problem, manifest.takes);  // features are of the lengths that are taken
    for (int bit = 0; bit < feature_count; ++bit) {
        const auto feature = static_cast<Feature>(bit);
        if (!manifest.takes.always.has(feature) || features_of(problem).has(feature)) continue;
        if (auto with = with_plain_feature(problem, feature, manifest.formats)) problem = *with;
    }
    kernel::fit(problem, manifest.takes);
    return problem;
}

Capability declared_capability(const kernel::Manifest& manifest) {
    using enum kernel::Quantity;
    Capability capability;
    static_cast<kernel::Manifest&>(capability) = manifest;
    const kernel::Takes& takes = manifest.takes;
    capability.always = with_needed(takes.always);
    capability.dim_max = takes[dim_qk].most.value_or(0);
    if (takes[len_q].most && takes[len_kv].most)
        capability.len_max = std::max(*takes[len_q].most, *takes[len_kv].most);
    std::vector<std::int64_t>& dims = capability.dims;
    for (const kernel::DimPair& pair : takes.dims) dims.push_back(pair.qk);
    if (!takes[dim_qk].only.empty()) dims = takes[dim_qk].only;
    if (dims.empty() && !takes[dim_qk].any()) {
        dims = landmark_dims();
        std::erase_if(dims, [&](std::int64_t dim) { return !takes[dim_qk].has(dim); });
        for (const std::int64_t end : {std::int64_t{1}, capability.dim_max})
            if (end > 0) dims.push_back(takes[dim_qk].nearest(end));
    }
    std::sort(dims.begin(), dims.end());
    dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
    const Problem plain = fitted({.len_q = tokens, .len_kv = tokens}, capability);
    capability.outliers = outliers_taken(plain, capability, [](const Problem&) { return true; });
    return capability;
}

std::vector<kernel::Formats> formats_of(const law::CaseSpace& space, const Capability& capability) {
    std::vector<kernel::Formats> had = capability.formats;
    std::erase_if(had, [&](const kernel::Formats& formats) {
        return !space.formats.empty() && std::find(space.formats.begin(), space.formats.end(),
                                                   formats.q) == space.formats.end();
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

bool shows_little(const law::Property& property, const kernel::Manifest& manifest) noexcept {
    const Numerics& numerics = manifest.numerics;
    if (has_coarse_steps(numerics) || law::coarse_exp(numerics)) return true;
    const auto lacks = [&](Role role) { return !kernel::among(manifest.gradients, role); };
    return property.needs.backward && (lacks(Role::d_q) || lacks(Role::d_k) || lacks(Role::d_v));
}

std::int64_t cases_afforded(std::int64_t cases, const kernel::Takes& takes) {
    // Beyond so many, making a case's input numbers is most of what it costs (85 % at a million).
    constexpr std::int64_t numbers_usual = 1 << 17, least_share = 3;
    Problem p;
    p.dim_qk = 1;
    kernel::fit_heads(p, takes);
    kernel::fit_lengths(p, takes, takes.queries);
    kernel::fit(p, takes);
    const std::int64_t tokens = p.batch * (p.heads_q * p.len_q + p.heads_kv * p.len_kv);
    const std::int64_t numbers = tokens * (p.dim_qk + value_dim(p));
    if (numbers <= numbers_usual) return cases;
    return std::max(cases * numbers_usual / numbers, (cases + least_share - 1) / least_share);
}

bool Capability::refuses(const Problem& problem) const {
    if (refused_together.empty()) return false;
    const Traits traits = traits_of(problem);
    return std::any_of(refused_together.begin(), refused_together.end(),
                       [traits](Traits set) { return (traits & set) == set; });
}

bool Capability::narrow() const noexcept {
    return !refused_together.empty() || always != FeatureSet{} || !dims.empty() ||
           found != kernel::NumberLimits{} || !kernel::described(takes).empty();
}

bool Capability::takes_numbers_of(const Problem& problem) const {
    return !kernel::refusal(takes, problem) && !kernel::refusal(found, problem);
}

std::int64_t Capability::tile_q() const {
    using enum kernel::Quantity;
    return std::lcm(found[len_q].multiple, takes[len_q].multiple);
}

std::int64_t Capability::tile_kv() const {
    using enum kernel::Quantity;
    return std::lcm(found[len_kv].multiple, takes[len_kv].multiple);
}

std::int64_t Capability::page_least() const {
    return features.has(Feature::paged) ? takes[kernel::Quantity::page_size].nearest(1) : 1;
}

Problem Capability::smallest(bool alike) const {
    const bool cached = always.has(Feature::cache);
    Problem p;
    if (features.has(Feature::gqa)) p.heads_q = 2;
    kernel::fit_heads(p, takes);
    const kernel::Queries relation = cached ? kernel::Queries::at_most_keys : kernel::Queries::any;
    kernel::fit_heads(p, found);
    kernel::fit_lengths(p, found, relation);
    kernel::fit_lengths(p, takes, alike ? kernel::Queries::as_keys : relation);
    if (alike) p.len_q = p.len_kv = std::max(p.len_q, p.len_kv);
    return p;
}

}  // namespace attest::search
