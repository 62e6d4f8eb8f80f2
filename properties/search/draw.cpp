#include "properties/search/draw.hpp"

#include <algorithm>

#include "properties/search/derive.hpp"
#include "properties/search/features.hpp"
#include "properties/search/landmarks.hpp"
#include "reference/problem/counter.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

constexpr std::uint64_t draw_stream = 1, values_stream = 2, kinds_stream = 3, start_stream = 4;

std::int64_t least_limit(std::initializer_list<std::int64_t> limits) {
    std::int64_t least = 0;
    for (const std::int64_t limit : limits)
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
    return std::max<std::int64_t>(least, 1);
}

/// Whether cases are of the profile's long lengths and not of the law's own.
bool is_long(const DrawSpace& s) {
    return s.property.cases.any_length && s.profile.len_min > 1;
}

std::int64_t scores_limit(const DrawSpace& s) {
    if (is_long(s)) return s.profile.scores_max;
    return std::max(least_limit({s.property.cases.scores_max, s.profile.scores_max}),
                    s.capability.geometry.least_scores());
}

RawLimits raw_limits(const DrawSpace& s) {
    const law::CaseSpace& space = s.property.cases;
    RawLimits limits;
    limits.len_max = least_limit(
        {is_long(s) ? 0 : space.len_max, s.profile.len_max, s.capability.len_max, scores_limit(s)});
    limits.len_max = std::max(limits.len_max, s.capability.geometry.least_len());
    if (is_long(s)) limits.long_from = std::min(s.profile.len_min, limits.len_max);
    limits.batch_max = std::max<std::int64_t>(space.batch_max, 1);
    const std::int64_t dim_max =
        least_limit({space.dim_max, s.profile.dim_max, s.capability.dim_max});
    limits.dims = s.capability.dims.empty() ? landmark_dims() : s.capability.dims;
    const std::int64_t least = limits.dims.front();
    std::erase_if(limits.dims, [dim_max](std::int64_t dim) { return dim > dim_max; });
    if (limits.dims.empty()) limits.dims = {least};  // above what the profile wants: all there is
    return limits;
}

/// Features by chance, in percent, where they may be drawn.
FeatureSet structural(const DrawSpace& s, FeatureSet drawable, const Raw& raw) {
    using enum Feature;
    constexpr std::array<std::pair<Feature, std::int64_t>, 7> shares = {{{gqa, 45},
                                                                         {dim_v, 20},
                                                                         {scale, 20},
                                                                         {layout, 25},
                                                                         {splits, 35},
                                                                         {mixed_formats, 12},
                                                                         {lse, 90}}};
    FeatureSet set;
    for (const auto& [feature, percent] : shares) {
        if (feature == scale && s.property.cases.default_scale) continue;
        if (drawable.has(feature) && raw.chance[static_cast<std::size_t>(feature)] < percent)
            set = set.with(feature);
    }
    if (s.property.needs.lse) set = set.with(lse);
    return set;
}

/// Makes the set one that a problem can have, giving up what the law does not require.
FeatureSet reconciled(FeatureSet set, FeatureSet required, FeatureSet drawable, bool len_q_one) {
    using enum Feature;
    if (set.has(paged)) set = set.with(cache);
    if (set.has(keys_rotated)) set = set.with(cache).with(rope);
    const bool positions = set.has(alibi) || set.has(rope);
    const bool lens = set.has(lens_q) || set.has(lens_kv);
    if (!positions || set.has(cache) || (!lens && !len_q_one)) return set;
    // Positions beside lengths, or beside one query, need a cache to count from.
    if (drawable.has(cache) && !set.has(documents)) return set.with(cache);
    if (!required.has(lens_q)) set = set.without(lens_q);
    if (!required.has(lens_kv)) set = set.without(lens_kv);
    return set;
}

struct DrawSlot {
    std::int64_t format, t;  ///< t counts the cases of one format
};

DrawSlot slot_of(std::int64_t number, std::size_t formats) {
    const auto count = static_cast<std::int64_t>(formats);
    return {number % count, number / count};
}

bool only_causal_hides(FeatureSet set) {
    using enum Feature;
    for (const Feature other : {lens_q, lens_kv, documents, mask_bool, mask_additive})
        if (set.has(other)) return false;
    return set.has(causal);
}

FeatureSet features_for(const DrawSpace& s, const Raw& raw, std::int64_t t, std::uint64_t start) {
    const law::CaseSpace& space = s.property.cases;
    const auto sets = alternatives(space, s.capability);
    const FeatureSet chosen = sets[static_cast<std::size_t>(t) % sets.size()];
    const FeatureSet required = space.require | chosen | s.capability.always;
    FeatureSet drawable = (space.allow & s.capability.features) | required;
    drawable = drawable.without(Feature::dropout);  // drawn where a law asks for it alone
    if (!drawable.has(Feature::rope) || !drawable.has(Feature::cache))
        drawable = drawable.without(Feature::keys_rotated);
    FeatureSet turns = drawable;
    for (int bit = 0; bit < feature_count; ++bit)
        if (structural_features().has(static_cast<Feature>(bit)))
            turns = turns.without(static_cast<Feature>(bit));
    FeatureSet set = planned_features(required, turns, t, start);
    // Beside its turns: nearly every real kernel is causal most of the time.
    constexpr std::int64_t causal_percent = 25;
    if (turns.has(Feature::causal) &&
        raw.chance[static_cast<std::size_t>(Feature::causal)] < causal_percent)
        set = set.with(Feature::causal);
    // Positions count from a cache's end: what is off by one there shows by nothing else.
    constexpr std::int64_t position_percent = 30;
    for (const Feature feature : {Feature::rope, Feature::alibi})
        if (turns.has(feature) && (set.has(Feature::cache) || set.has(Feature::paged)) &&
            raw.chance[static_cast<std::size_t>(feature)] < position_percent)
            set = set.with(feature);
    set = set | structural(s, drawable, raw);
    set = reconciled(set, required, drawable, space.len_q_one);
    if (!space.more_queries || !only_causal_hides(set) || required.has(Feature::cache)) return set;
    return set.without(Feature::cache).without(Feature::paged);
}

/// Kinds in turns of a block in which each comes once and normal once more for every two others;
/// the order within a block is the block's own.
ValueKind kind_of(const law::CaseSpace& space, std::int64_t t, std::uint64_t seed) {
    std::vector<ValueKind> block = space.kinds;
    if (block.empty())
        for (int kind = 0; kind < value_kind_count; ++kind)
            block.push_back(static_cast<ValueKind>(kind));
    if (std::find(block.begin(), block.end(), ValueKind::normal) != block.end())
        block.insert(block.end(), block.size() / 2, ValueKind::normal);
    const auto size = static_cast<std::int64_t>(block.size());
    const auto round = static_cast<std::uint64_t>(t / size);
    for (std::size_t i = block.size(); i > 1; --i)  // Fisher and Yates
        std::swap(block[i - 1], block[counter_bits(seed, kinds_stream + (round << 8), i) % i]);
    return block[static_cast<std::size_t>(t % size)];
}

}  // namespace

namespace {

/// Gives up what the kernel has said it does not take and no feature has a name for.
void fit(Problem& p, const Capability& capability) {
    const auto& pages = capability.geometry.page_sizes;
    if (p.cache.page_size > 0 && !pages.empty() &&
        std::find(pages.begin(), pages.end(), p.cache.page_size) == pages.end())
        p.cache.page_size = pages[static_cast<std::size_t>(p.cache.page_size) % pages.size()];
    MaskPattern& pattern = p.mask.tensor.pattern;
    if (capability.dialect.empty_row == EmptyRow::refuse && pattern == MaskPattern::empty_rows)
        pattern = MaskPattern::one_key;
    Window& window = p.mask.window;
    if (!capability.window_right && window.limited())
        window = {.left = std::max(window.left, window.right), .right = -1};
}

}  // namespace

std::uint64_t law_seed(std::uint64_t campaign_seed, std::string_view law) noexcept {
    std::uint64_t hash = campaign_seed;
    for (const char c : law) hash = counter_bits(hash, 0, static_cast<unsigned char>(c));
    return hash;
}

std::optional<Case> draw(const DrawSpace& s, std::uint64_t seed, std::int64_t number,
                         std::int64_t attempt) {
    if (why_not_applicable(s.property, s.capability)) return std::nullopt;
    const law::CaseSpace& space = s.property.cases;
    const std::uint64_t base = law_seed(seed, s.property.id);
    const std::uint64_t own =
        counter_bits(base, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(attempt));
    Raw raw =
        raw_draws(raw_limits(s))(rc::Random(counter_bits(own, draw_stream, 0)), rc::kNominalSize)
            .value();
    if (is_long(s)) raw.size = Size::long_keys;
    const std::vector<Precision> formats = formats_of(space, s.capability);
    const DrawSlot slot = slot_of(number, formats.size());
    // A later attempt moves on to other features too: what was refused may be one of them.
    const std::int64_t turn = slot.t + attempt;
    Case c;
    Problem& p = c.problem;
    p.format_q = p.format_kv = p.format_o = formats[static_cast<std::size_t>(slot.format)];
    const FeatureSet features =
        features_for(s, raw, turn, counter_bits(base, start_stream, 0) >> 32);
    ShapePlan plan{features, scores_limit(s), raw_limits(s).len_max, space.len_q_one, space.square};
    plan.geometry = s.capability.geometry;
    if (!s.capability.dims.empty()) plan.dim_least = raw_limits(s).dims.front();
    plan.more_queries = space.more_queries && only_causal_hides(features);
    if (is_long(s)) plan.work_max = s.profile.scores_max * s.profile.dim_max;
    derive_shape(p, raw, plan);
    derive_features(p, raw, features, s.capability.formats);
    fit(p, s.capability);
    meet_an_edge(p, raw, s.capability.geometry);
    p = canonical(p);
    c.values.kind = kind_of(space, slot.t, base);
    c.values.seed = counter_bits(own, values_stream, 0) >> 40;  // 24 bits: a line stays readable
    if (find_contradiction(p) || !in_space(s.property, s.capability, p)) return std::nullopt;
    return c;
}

bool in_space(const law::Property& property, const Capability& capability, const Problem& problem) {
    Problem p = problem;
    fit(p, capability);
    if (p != problem || !takes_shape(capability.geometry, p)) return false;
    const law::CaseSpace& space = property.cases;
    const FeatureSet features = features_of(p);
    const FeatureSet own = space.allow | space.require;
    if (!features.contains(capability.always)) return false;
    FeatureSet allowed = own & capability.features;
    bool has_alternative = space.require_any.empty();
    for (const FeatureSet& set : space.require_any) {
        allowed = allowed | (set & capability.features);
        has_alternative = has_alternative || features.contains(set);
    }
    if (allowed.has(Feature::paged)) allowed = allowed.with(Feature::cache);
    if (property.needs.lse) allowed = allowed.with(Feature::lse);
    if (!has_alternative || !features.contains(space.require) || !allowed.contains(features))
        return false;
    if (property.needs.lse && !p.want_lse) return false;
    const std::vector<Precision> formats = formats_of(space, capability);
    if (std::find(formats.begin(), formats.end(), p.format_q) == formats.end()) return false;
    for (const Precision format : {p.format_kv, p.format_o})
        if (std::find(capability.formats.begin(), capability.formats.end(), format) ==
            capability.formats.end())
            return false;
    const std::int64_t dim_least = capability.dims.empty() ? 1 : capability.dims.front();
    const std::int64_t dim_max =
        std::max(least_limit({space.dim_max, capability.dim_max}) + 1, dim_least);  // rope: even
    const std::int64_t len = std::max(p.len_q, p.len_kv);
    const bool takes = capability.len_max == 0 || len <= capability.len_max;
    const Geometry& shapes = capability.geometry;
    const bool fits = score_count(p) <= std::max(space.scores_max, shapes.least_scores()) &&
                      len <= std::max(space.len_max, shapes.least_len());
    return takes && (fits || space.any_length) && std::max(p.dim_qk, value_dim(p)) <= dim_max &&
           p.batch <= space.batch_max && (!space.len_q_one || p.len_q == 1) &&
           (!space.square || p.len_q == p.len_kv) && (!space.default_scale || !p.scale) &&
           (space.admits == nullptr || space.admits(p));
}

bool in_space(const law::Property& property, const Values& values) {
    const auto& kinds = property.cases.kinds;
    if (kinds.empty()) return true;
    return values.tensors.empty() &&
           std::find(kinds.begin(), kinds.end(), values.kind) != kinds.end();
}

bool in_space(const law::Property& property, const Case& tried) {
    kernel::Manifest everything;
    everything.formats = {Precision::f64, Precision::f32, Precision::f16, Precision::bf16};
    everything.features = FeatureSet::all();
    return in_space(property, declared_capability(everything), tried.problem) &&
           in_space(property, tried.values);
}

}  // namespace attest::search
