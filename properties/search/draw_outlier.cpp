#include "properties/search/draw_outlier.hpp"

#include <algorithm>

#include "properties/search/features.hpp"

namespace attest::search {

namespace {

using enum SizeAxis;

/// One case of seven of each format: the others keep the turns that features and kinds take.
constexpr std::int64_t period = 7;

/// An outlier's scores are at most those of so many cases, of as many channels as those have:
/// nearly all its other sizes are one, and what a score costs beside a case's fixed price is
/// little.
constexpr std::int64_t cases_worth = 32, channels_usual = 24;

bool at_odds(FeatureSet required, Feature feature) {
    for (int bit = 0; bit < feature_count; ++bit)
        if (required.has(static_cast<Feature>(bit)) &&
            !compatible(static_cast<Feature>(bit), feature))
            return true;
    return false;
}

/// Whether the law's own words and its features leave room for such a case.
bool follows(const law::CaseSpace& law, const OfferedFeatures& offered, const Sizes& sizes) {
    const auto beyond = [](std::int64_t size, std::int64_t most) {
        return most > 0 && size > most;
    };
    if (beyond(std::max(sizes[len_q], sizes[len_kv]), law.len_max) ||
        beyond(std::max(sizes[dim_qk], sizes[dim_v]), law.dim_max) ||
        beyond(sizes[batch], law.batch_max))
        return false;
    const FeatureSet required = offered.required;
    const bool grouped = sizes[heads_q] != sizes[heads_kv];
    const bool other_values = sizes[dim_v] > 0 && sizes[dim_v] != sizes[dim_qk];
    if ((grouped && !offered.drawable.has(Feature::gqa)) ||
        (sizes[heads_q] > 0 && !grouped && required.has(Feature::gqa)) ||
        (other_values && !offered.drawable.has(Feature::dim_v)))
        return false;
    if (sizes[batch] > 0 && required.has(Feature::documents)) return false;
    if (sizes[documents] > 0 && (!offered.drawable.has(Feature::documents) ||
                                 at_odds(required, Feature::documents) || law.len_q_one))
        return false;
    // Beside a cache there are as many keys, or more.
    const bool room = !required.has(Feature::cache) || sizes[len_kv] >= sizes[len_q];
    return sizes[len_q] == 0 || (!law.len_q_one && room);
}

std::int64_t scores_of(const law::CaseSpace& law, FeatureSet required, const Sizes& sizes,
                       const Capability& capability) {
    const bool square = law.square || counts_alike(required, capability.takes);
    Sizes least = sizes_of(capability.smallest(square));
    // Nothing asks for groups, and the kernel takes others.
    const bool groups = required.has(Feature::gqa) || sizes[heads_q] > 0;
    if (!groups && capability.takes[kernel::Quantity::group].has(1))
        least[heads_q] = least[heads_kv];
    least.cover(sizes);
    const std::int64_t longer = std::max(least[len_q], least[len_kv]);
    const std::int64_t area = square ? longer * longer : least[len_q] * least[len_kv];
    return least[batch] * least[heads_q] * area;
}

/// Of queries and values together, the fewest that the kernel takes.
std::int64_t channels_of(const Capability& capability, const Sizes& sizes) {
    constexpr std::int64_t few = 4;
    const std::int64_t least =
        capability.dims.empty() ? few : std::max(few, capability.dims.front());
    const std::int64_t qk = std::max(sizes[dim_qk], least);
    return qk + std::max(sizes[dim_v], least);
}

/// In the order in which they come up: the largest of each axis, then the others, either from a
/// place of the law's own.
std::vector<Sizes> in_order(std::vector<Sizes> others, std::uint64_t start) {
    Sizes largest;
    for (const Sizes& sizes : others) largest.cover(sizes);
    const auto is_largest = [&](const Sizes& sizes) {
        for (int n = 0; n < size_axis_count; ++n) {
            const auto axis = static_cast<SizeAxis>(n);
            if (sizes[axis] > 0 && sizes[axis] == largest[axis]) return true;
        }
        return false;
    };
    const auto middle = std::stable_partition(others.begin(), others.end(), is_largest);
    const auto rotated = [start](auto begin, auto end) {
        if (begin != end)
            std::rotate(begin,
                        begin + static_cast<std::ptrdiff_t>(
                                    start % static_cast<std::uint64_t>(end - begin)),
                        end);
    };
    rotated(others.begin(), middle);
    rotated(middle, others.end());
    return others;
}

}  // namespace

std::vector<Sizes> outliers_of(const DrawSpace& s, const OfferedFeatures& offered) {
    const law::CaseSpace& law = s.property.cases;
    // The kernel takes no channels so few that the law could afford more of anything.
    const std::vector<std::int64_t>& dims = s.capability.dims;
    if (law.dim_max > 0 && !dims.empty() && dims.front() > law.dim_max) return {};
    const std::int64_t scores = cases_worth * s.profile.scores_max / law.cost;
    const std::int64_t scores_max = law.scores_max > 0 ? std::min(scores, law.scores_max) : scores;
    std::vector<Sizes> list;
    const auto too_dear = [&](const Sizes& sizes) {
        return s.capability.simulated && law.cost > 1 &&
               least_products(sizes) > simulated_products_max;
    };
    for (const Sizes& sizes : s.capability.outliers)
        if (sizes.within(s.profile.reach) && !too_dear(sizes) && follows(law, offered, sizes) &&
            scores_of(law, offered.required, sizes, s.capability) <=
                std::min(scores_max, scores * channels_usual / channels_of(s.capability, sizes)))
            list.push_back(sizes);
    return list;
}

std::optional<Sizes> outlier_for(const DrawSpace& s, const OfferedFeatures& offered,
                                 const DrawSlot& slot, std::uint64_t start) {
    const auto phase = static_cast<std::int64_t>(start % static_cast<std::uint64_t>(period));
    if (slot.t % period != phase) return std::nullopt;
    const std::vector<Sizes> all = in_order(outliers_of(s, offered), start / period);
    if (all.empty()) return std::nullopt;
    const std::int64_t turn = slot.t / period * slot.formats + slot.format;
    return all[static_cast<std::size_t>(turn) % all.size()];
}

FeatureSet features_beside(const Sizes& outlier, FeatureSet features,
                           const OfferedFeatures& offered, const Raw& raw,
                           const Capability& capability) {
    using enum Feature;
    constexpr std::int64_t beside_percent = 40;
    const auto by_chance = [&](Feature feature) {
        return offered.drawable.has(feature) &&
               raw.chance[static_cast<std::size_t>(feature)] < beside_percent;
    };
    const auto leave_out = [&](std::initializer_list<Feature> list) {
        for (const Feature feature : list)
            if (!offered.required.has(feature)) features = features.without(feature);
    };
    leave_out({window, ring, lens_q, documents});
    // Of many sequences the lengths of each cost nothing: they are read at its number.
    if (outlier[SizeAxis::batch] == 0) leave_out({lens_kv});
    const bool long_q = outlier[len_q] > 0, long_kv = outlier[len_kv] > 0;
    // Rows that see no key, or the first one alone.
    const bool top_left = capability.dialect.causal == CausalAlignment::top_left;
    if (long_q != long_kv && long_kv == top_left) leave_out({causal});
    if (long_q || outlier[SizeAxis::documents] > 0) leave_out({cache, paged, ring});
    // Positions without a cache are of as many queries as keys.
    const Problem square = capability.smallest(true);
    const bool many = long_q || long_kv || square.len_q * square.len_kv > scores_large;
    if (many && !features.has(cache)) leave_out({alibi, rope});
    for (const Feature feature : {softcap, sink})
        if (by_chance(feature) && !at_odds(offered.required, feature))
            features = features.with(feature);
    const bool placed = features.has(cache) || !(features.has(alibi) || features.has(rope));
    if (outlier[SizeAxis::batch] > 0 && placed && by_chance(lens_kv) &&
        !at_odds(offered.required, lens_kv))
        features = features.with(lens_kv);
    if (outlier[SizeAxis::documents] > 0) features = features.with(documents);
    if (outlier[heads_q] != outlier[heads_kv]) features = features.with(gqa);
    if (outlier[heads_q] > 0 && outlier[heads_q] == outlier[heads_kv]) leave_out({gqa});
    if (outlier[SizeAxis::dim_v] > 0) features = features.with(Feature::dim_v);
    return features;
}

RawLimits limits_beside(const Sizes& outlier, RawLimits limits) {
    // A page of the smallest caches and a tile's first keys; of few channels where keys are many.
    constexpr std::int64_t len_small = 9, dim_small = 9, dim_least = 4, len_large = 8192;
    const std::int64_t len = std::max(outlier[len_q], outlier[len_kv]);
    limits.len_max = std::max({len, len_small, 2 * outlier[documents]});
    const std::int64_t dim_max = len > len_large ? dim_least : dim_small;
    const std::int64_t least = limits.dims.front();
    std::erase_if(limits.dims, [&](std::int64_t dim) { return dim > std::max(dim_max, least); });
    return limits;
}

void stretch(Raw& raw, const Sizes& outlier, const Problem& least, const Profile& profile) {
    const std::int64_t len = least.batch * least.heads_kv * std::max(outlier[len_q], least.len_q) *
                             std::max(outlier[len_kv], least.len_kv);
    // Of a kernel that takes many sequences alone, fewer keys beside them.
    const std::int64_t room = std::max<std::int64_t>(cases_worth * profile.scores_max / len, 1);
    const auto put = [&](std::int64_t& field, SizeAxis axis, std::int64_t most) {
        field = outlier[axis] > 0 ? outlier[axis] : 1 + (field - 1) % most;
    };
    const std::int64_t few = len > scores_large ? 1 : 2;
    raw.size = Size::full;
    raw.relation = LengthRelation::free;
    put(raw.batch, batch, few);
    put(raw.heads_kv, heads_kv, few);
    raw.group = 2 + raw.group % few;
    if (outlier[heads_kv] > 0) raw.group = outlier[heads_q] / outlier[heads_kv];
    const std::int64_t documents_room = 2 * outlier[documents];
    put(raw.len_q, len_q, documents_room > 0 ? documents_room : 2 * few);
    put(raw.len_kv, len_kv, documents_room > 0 ? documents_room : std::min<std::int64_t>(room, 9));
    if (outlier[dim_qk] > 0) raw.dim_qk = outlier[dim_qk];
    if (outlier[dim_v] > 0) raw.dim_v = outlier[dim_v];
    if (outlier[documents] > 0) raw.documents = outlier[documents];
}

}  // namespace attest::search
