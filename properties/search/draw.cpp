#include "properties/search/draw.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "properties/search/derive.hpp"
#include "properties/search/draw_limits.hpp"
#include "properties/search/draw_outlier.hpp"
#include "properties/search/features.hpp"
#include "reference/problem/counter.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

/// Attempts that stay with the outlier of a case; as many are left for one that the law can use.
constexpr std::int64_t outlier_attempts = 8;

/// Channels a score, of a case and of a run's usual ones: few scores come with 256, all of them
/// with few.
constexpr std::int64_t work_a_score = 64, work_most = 24;

constexpr std::uint64_t draw_stream = 1, values_stream = 2, kinds_stream = 3, start_stream = 4,
                        dropout_stream = 5, tiles_stream = 6;

/// By chance half of the later cases: a case's format and kind of values go by its number.
bool has_several_tiles(const DrawSpace& s, std::int64_t number, std::uint64_t own) {
    return s.property.cases.several_tiles && !is_long(s) && number >= s.profile.cases_per_law / 2 &&
           counter_bits(own, tiles_stream, 0) % 2 == 0;
}

/// Features by chance, in percent, where they may be drawn.
FeatureSet structural(const DrawSpace& s, FeatureSet drawable, const Raw& raw) {
    using enum Feature;
    constexpr std::array<std::pair<Feature, std::int64_t>, 9> shares = {{{gqa, 45},
                                                                         {dim_v, 20},
                                                                         {scale, 20},
                                                                         {negative_scale, 50},
                                                                         {layout, 25},
                                                                         {splits, 35},
                                                                         {mixed_formats, 12},
                                                                         {lse, 90},
                                                                         {d_lse, 40}}};
    FeatureSet set;
    for (const auto& [feature, percent] : shares) {
        if (feature == scale && s.property.cases.default_scale) continue;
        if (feature == negative_scale && !set.has(scale)) continue;
        if (drawable.has(feature) && raw.chance[static_cast<std::size_t>(feature)] < percent)
            set = set.with(feature);
    }
    if (s.property.needs.lse) set = set.with(lse);
    return set;
}

/// Makes the set one that a problem can have, giving up what the law does not require.
FeatureSet reconciled(FeatureSet set, FeatureSet required, FeatureSet drawable, bool len_q_one,
                      bool padded) {
    using enum Feature;
    if (set.has(ring)) set = set.without(paged);
    set = with_needed(set);
    const bool positions = set.has(alibi) || set.has(rope);
    const bool lens = set.has(lens_q) || set.has(lens_kv);
    if (!positions || set.has(cache) || (!lens && !len_q_one)) return set;
    // Positions beside one query need a cache to count from, beside lengths a cache or padding.
    const bool pads = !len_q_one && drawable.has(lens_q) && drawable.has(lens_kv);
    const bool caches = drawable.has(cache) && !set.has(documents);
    if (pads && (padded || !caches)) return set.with(lens_q).with(lens_kv);
    if (caches) return set.with(cache);
    if (!required.has(lens_q)) set = set.without(lens_q);
    if (!required.has(lens_kv)) set = set.without(lens_kv);
    return set;
}

Raw raw_draw(const DrawSpace& s, const RawLimits& limits, std::uint64_t seed) {
    Raw raw = raw_draws(limits)(rc::Random(seed), rc::kNominalSize).value();
    if (is_long(s)) raw.size = Size::long_keys;
    if (!kernel::takes_shared(s.capability.takes, &MaskTensor::shared_keys))
        raw.shared_keys = false;
    return raw;
}

DrawSlot slot_of(std::int64_t number, std::size_t formats) {
    const auto count = static_cast<std::int64_t>(formats);
    return {number % count, number / count, count};
}

OfferedFeatures offered_features(const DrawSpace& s, FeatureSet chosen) {
    const law::CaseSpace& space = s.property.cases;
    const FeatureSet required = space.require | chosen | s.capability.always;
    FeatureSet drawable = (space.allow & s.capability.features) | required;
    drawable = drawable.without(Feature::dropout);  // drawn where a law asks for it alone
    if (!s.property.needs.backward) drawable = drawable.without(Feature::d_lse);
    if (!drawable.has(Feature::rope) || !drawable.has(Feature::cache))
        drawable = drawable.without(Feature::keys_rotated);
    // What is hidden by all but the window is the mean of every value, and a ring holds the last.
    if (!drawable.has(Feature::window) || !drawable.has(Feature::cache) ||
        s.capability.dialect.empty_row == EmptyRow::mean)
        drawable = drawable.without(Feature::ring);
    return {required, drawable};
}

FeatureSet features_for(const DrawSpace& s, const OfferedFeatures& offered, const Raw& raw,
                        std::int64_t t, std::uint64_t start) {
    const law::CaseSpace& space = s.property.cases;
    const auto& [required, drawable] = offered;
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
    constexpr std::int64_t position_percent = 30, padded_percent = 40;
    for (const Feature feature : {Feature::rope, Feature::alibi})
        if (turns.has(feature) && (set.has(Feature::cache) || set.has(Feature::paged)) &&
            raw.chance[static_cast<std::size_t>(feature)] < position_percent)
            set = set.with(feature);
    set = set | structural(s, drawable, raw);
    const bool padded = raw.chance[static_cast<std::size_t>(Feature::lens_q)] < padded_percent;
    set = reconciled(set, required, drawable, space.len_q_one, padded);
    if (!space.more_queries || !only_causal_hides(set) || required.has(Feature::cache)) return set;
    return beside_more_queries(set, required);
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

/// The mean of centred keys may be as large as they are, and what is left of them is rounded: an
/// error that grows with the scale, so that in 16 bits a law that reads the log-sum-exp has nothing
/// to hold most draws to. Where one came to nothing every other attempt has small scores, and
/// smaller ones each time.
void shrink_scores(Problem& p, const DrawSpace& s, const OfferedFeatures& offered,
                   std::int64_t attempt) {
    if (!s.capability.numerics.centred_keys || attempt % 2 == 0) return;
    if (s.property.cases.default_scale || !offered.drawable.has(Feature::scale)) return;
    const double least = std::ldexp(1.0, -static_cast<int>(attempt / 4));
    const double scale = round_to(least / static_cast<double>(p.dim_qk), Precision::f32);
    p.scale = p.scale && *p.scale < 0 ? -scale : scale;
}

/// What of a plan follows from the shapes that the kernel takes.
void of_kernel(ShapePlan& plan, const DrawSpace& s, bool alike, bool is_outlier) {
    plan.found = s.capability.found;
    plan.takes = s.capability.takes;
    if (!s.capability.dims.empty()) plan.dim_least = raw_limits(s).dims.front();
    if (is_outlier) return;  // its lengths are what they are
    plan.tile_q = s.capability.tile_q();
    plan.tile_kv = s.capability.tile_kv();
    const bool paged = plan.features.has(Feature::paged);
    plan.scores_least =
        std::max(score_count(s.capability.smallest(alike)), paged ? s.capability.page_least() : 1);
    plan.work_max = std::max(plan.work_max, scores_floor(s, alike) * plan.dim_least);
}

/// Where values have a head dimension of their own and the kernel takes few such pairs: one of
/// them.
void fit_unequal_dims(Problem& p, const Raw& raw, const Capability& capability) {
    const auto& pairs = capability.unequal_dims;
    if (pairs.empty() || p.dim_v == 0 ||
        std::find(pairs.begin(), pairs.end(), std::pair(p.dim_qk, p.dim_v)) != pairs.end())
        return;
    std::tie(p.dim_qk, p.dim_v) =
        pairs[static_cast<std::size_t>(raw.dim_qk + raw.dim_v) % pairs.size()];
}

/// The nearest rate that such levels have, neither 0 nor 1.
double taken_rate(double rate, std::int64_t levels) {
    if (levels < 2) return rate;
    const auto all = static_cast<double>(levels);
    return std::clamp(std::round(rate * all), 1.0, all - 1) / all;
}

/// Of more than 32 bits now and then: a pass that cuts them drops others.
std::uint64_t dropout_seed(std::uint64_t bits) {
    return bits >> (bits % 4 == 0 ? 24 : 40);
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
    if (const Capability& taken = taken_by(s.property, s.capability); &taken != &s.capability)
        return draw({s.property, taken, s.profile}, seed, number, attempt);
    const law::CaseSpace& space = s.property.cases;
    const std::uint64_t base = law_seed(seed, s.property.id);
    const std::uint64_t own =
        counter_bits(base, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(attempt));
    const std::vector<kernel::Formats> formats = formats_of(space, s.capability);
    const DrawSlot slot = slot_of(number, formats.size());
    // A later attempt moves on to other features too: what was refused may be one of them. At last
    // it is the outlier.
    const std::int64_t turn = slot.t + attempt;
    const std::uint64_t start = counter_bits(base, start_stream, 0) >> 32;
    const auto sets = alternatives(space, s.capability);
    const OfferedFeatures offered =
        offered_features(s, sets[static_cast<std::size_t>(turn) % sets.size()]);
    const auto outlier =
        attempt < outlier_attempts ? outlier_for(s, offered, slot, start) : std::nullopt;
    const bool far = is_long(s) && number % 3 == 2;  // beyond what 16 bits count
    RawLimits limits = outlier ? limits_beside(*outlier, raw_limits(s)) : raw_limits(s);
    if (far) limits.long_from = std::min<std::int64_t>(65537, limits.len_max);
    Raw raw = raw_draw(s, limits, counter_bits(own, draw_stream, 0));
    const bool tiles = !outlier && has_several_tiles(s, number, own);
    if (tiles) cut_into_several_tiles(raw);
    Case c;
    Problem& p = c.problem;
    const kernel::Formats& own_formats = formats[static_cast<std::size_t>(slot.format)];
    p.format_q = own_formats.q;
    p.format_kv = own_formats.kv;
    p.format_o = own_formats.o;
    FeatureSet features = features_for(s, offered, raw, turn, start);
    if (!outlier && features.has(Feature::paged))
        cut_into_several_pages(raw, s.capability.page_least());
    const bool alike = space.square || counts_alike(features, s.capability.takes);
    const std::int64_t scores_max = scores_limit(s, alike) * (tiles ? space.cost : 1);
    ShapePlan plan{features, scores_max, limits.len_max, space.len_q_one, space.square};
    plan.work_max = std::min(work_a_score * plan.scores_max, work_most * s.profile.scores_max);
    if (outlier) {
        stretch(raw, *outlier, s.capability.smallest(alike), s.profile);
        plan.features = features = features_beside(*outlier, features, offered, raw, s.capability);
        plan.scores_max = plan.work_max = std::numeric_limits<std::int64_t>::max();
    } else if (is_long(s)) {
        plan.work_max = s.profile.scores_max * s.profile.dim_max;
    }
    of_kernel(plan, s, alike, outlier.has_value());
    plan.more_queries = space.more_queries && only_causal_hides(features);
    derive_shape(p, raw, plan);
    fit_unequal_dims(p, raw, s.capability);
    derive_features(p, raw, features, s.capability.formats);
    shrink_scores(p, s, offered, attempt);
    if (p.dropout.p > 0) {
        p.dropout.seed = dropout_seed(counter_bits(own, dropout_stream, 0));
        p.dropout.p = taken_rate(p.dropout.p, s.capability.dropout_levels);
    }
    kernel::spread(p, s.capability.takes);
    fit(p, s.capability);
    if (!outlier) meet_an_edge(p, raw, s.capability);
    // Backward recomputes the weights from the log-sum-exp where the kernel has one.
    p.want_grad = s.property.needs.backward;
    if (p.want_grad) p.want_lse = s.capability.features.has(Feature::lse);
    p = canonical(p);
    c.values.kind = kind_of(space, slot.t, base);
    // There the last keys decide.
    if (far && space.kinds.empty() && number % 2 == 0) c.values.kind = ValueKind::ascending;
    c.values.seed = counter_bits(own, values_stream, 0) >> 40;  // 24 bits: a line stays readable
    if (find_contradiction(p) || !in_space(s.property, s.capability, p)) return std::nullopt;
    return c;
}

Sizes promised_sizes(const DrawSpace& s) {
    Sizes most;
    if (why_not_applicable(s.property, s.capability)) return most;
    if (const Capability& taken = taken_by(s.property, s.capability); &taken != &s.capability)
        return promised_sizes({s.property, taken, s.profile});
    for (const FeatureSet set : alternatives(s.property.cases, s.capability))
        for (const Sizes& sizes : outliers_of(s, offered_features(s, set))) most.cover(sizes);
    return most;
}

}  // namespace attest::search
