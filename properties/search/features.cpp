#include "properties/search/features.hpp"

#include <algorithm>
#include <utility>

#include "reference/problem/counter.hpp"
#include "reference/problem/fields.hpp"

namespace attest::search {

namespace {

bool is_pair(Feature a, Feature b, Feature x, Feature y) noexcept {
    return (a == x && b == y) || (a == y && b == x);
}

bool fits(FeatureSet set, Feature feature) noexcept {
    for (int bit = 0; bit < feature_count; ++bit) {
        const auto other = static_cast<Feature>(bit);
        if (set.has(other) && !compatible(other, feature)) return false;
    }
    return true;
}

/// The members of `optional` that go with `base`, in an order that depends on `start` alone.
std::vector<Feature> candidates(FeatureSet base, FeatureSet optional, std::uint64_t start) {
    std::vector<Feature> features;
    for (int bit = 0; bit < feature_count; ++bit) {
        const auto feature = static_cast<Feature>(bit);
        if (optional.has(feature) && !base.has(feature) && fits(base, feature))
            features.push_back(feature);
    }
    std::stable_sort(features.begin(), features.end(), [start](Feature a, Feature b) {
        return counter_bits(start, 0, static_cast<std::uint64_t>(a)) <
               counter_bits(start, 0, static_cast<std::uint64_t>(b));
    });
    return features;
}

std::vector<std::pair<Feature, Feature>> pairs_of(const std::vector<Feature>& features) {
    std::vector<std::pair<Feature, Feature>> pairs;
    for (std::size_t stride = 1; stride < features.size();
         ++stride)  // neighbours far apart in turn
        for (std::size_t i = 0; i + stride < features.size(); ++i)
            if (compatible(features[i], features[i + stride]))
                pairs.emplace_back(features[i], features[i + stride]);
    return pairs;
}

}  // namespace

std::string names(FeatureSet set, const char* separator) {
    std::string text;
    for (int bit = 0; bit < feature_count; ++bit) {
        const auto feature = static_cast<Feature>(bit);
        if (!set.has(feature)) continue;
        if (!text.empty()) text += separator;
        text += name(feature);
    }
    return text;
}

bool compatible(Feature a, Feature b) noexcept {
    using enum Feature;
    if (is_pair(a, b, mask_bool, mask_additive) || is_pair(a, b, paged, ring)) return false;
    for (const Feature other : {cache, paged, lens_q, lens_kv, keys_rotated, ring})
        if (is_pair(a, b, documents, other)) return false;
    return true;
}

FeatureSet with_needed(FeatureSet set) noexcept {
    using enum Feature;
    if (set.has(paged)) set = set.with(cache);
    if (set.has(keys_rotated)) set = set.with(cache).with(rope);
    // Without a window a ring holds every key, each in its place.
    if (set.has(ring)) set = set.with(cache).with(window);
    return set;
}

FeatureSet structural_features() noexcept {
    using enum Feature;
    return FeatureSet(gqa, dim_v, scale, negative_scale, layout, splits, mixed_formats, lse, d_lse);
}

bool counts_alike(FeatureSet set, const kernel::Takes& takes) noexcept {
    if (takes.queries == kernel::Queries::as_keys) return true;
    const bool lens = set.has(Feature::lens_q) || set.has(Feature::lens_kv);
    return !set.has(Feature::cache) && (set.has(Feature::alibi) || set.has(Feature::rope) ||
                                        (lens && takes.padding == kernel::Padding::right));
}

FeatureSet planned_features(FeatureSet base, FeatureSet optional, std::int64_t t,
                            std::uint64_t start) {
    const std::vector<Feature> features = candidates(base, optional, start);
    if (features.empty()) return base;
    const auto pairs = pairs_of(features);
    // Of eight slots: one bare, two with one feature, five with a pair; every third pair with a
    // third.
    constexpr std::int64_t period = 8, bare = 1, single = 2;
    const std::int64_t round = t / period, phase = t % period;
    if (phase < bare) return base;
    const std::size_t singles_before = static_cast<std::size_t>(round * single + phase - bare);
    if (phase < bare + single || pairs.empty())
        return base.with(features[singles_before % features.size()]);
    const auto turn =
        static_cast<std::size_t>(round * (period - bare - single) + phase - bare - single);
    const auto [first, second] = pairs[(turn + start) % pairs.size()];
    FeatureSet set = base.with(first).with(second);
    const Feature third = features[(turn / 3) % features.size()];
    if (turn % 3 == 0 && fits(set, third)) set = set.with(third);
    return set;
}

void set_plain_fields(Problem& p, FeatureSet features, std::span<const std::int64_t> picks) {
    std::size_t row = 0;
    for (const auto group : field_groups()) {
        const Field& field = group.front();
        const bool used = field.use.feature && features.has(*field.use.feature);
        const FieldValue value = field.place.get(p);
        if (group.size() == 1 && field.use.feature && std::holds_alternative<bool>(value))
            field.place.set(p, used);
        if (field.drawn.empty()) continue;
        const auto pick = row < picks.size() ? static_cast<std::size_t>(picks[row]) : 0;
        const double number = field.drawn[pick % field.drawn.size()];
        ++row;
        if (!used) continue;
        if (std::holds_alternative<std::int64_t>(value))
            field.place.set(p, static_cast<std::int64_t>(number));
        else
            field.place.set(p, number);
    }
}

namespace {

void set_plain_cache(Problem& p, Feature kind) {
    if (p.len_q == p.len_kv) p.len_q = p.len_kv / 4;
    p.cache.present = true;
    p.cache.len = p.len_kv - p.len_q;
    for (std::int64_t& len : p.mask.lens_q) len = std::min(len, p.len_q / 2);
    if (kind == Feature::paged) p.cache.page_size = 16;
    if (kind == Feature::ring) p.cache.ring = p.mask.causal = true, p.mask.window.left = 8;
}

}  // namespace

std::optional<Problem> with_plain_feature(Problem p, Feature feature,
                                          const std::vector<kernel::Formats>& formats) {
    using enum Feature;
    switch (feature) {
        case window:
            p.mask.window.left = 8;
            break;
        case lens_q:
            p.mask.lens_q = {p.len_q / 2};
            break;
        case lens_kv:
            p.mask.lens_kv = {p.len_kv / 2};
            break;
        case mask_bool:
        case mask_additive:
            p.mask.tensor.kind = feature == mask_bool ? MaskKind::boolean : MaskKind::additive;
            break;
        case documents:
            p.mask.documents_q = {p.len_q / 2, p.len_q - p.len_q / 2};
            p.mask.documents_kv = {p.len_kv / 2, p.len_kv - p.len_kv / 2};
            break;
        case softcap:
            p.softcap = 20;
            break;
        case rope:
            if (p.dim_qk % 2 != 0) return std::nullopt;
            p.rope.style = RopeStyle::half;
            break;
        case gqa:
            p.heads_q = 2 * p.heads_kv;
            break;
        case dim_v:
            p.dim_v = 2 * p.dim_qk;
            break;
        case scale:
            if (!p.scale) p.scale = 0.5;
            break;
        case negative_scale:
            p.scale = -0.5;
            break;
        case cache:
        case paged:
        case ring:
            set_plain_cache(p, feature);
            break;
        case keys_rotated: {
            const auto rotary = with_plain_feature(p, rope, formats);
            if (!rotary) return std::nullopt;
            p = *with_plain_feature(*rotary, cache, formats);
            p.cache.keys_rotated = true;
            break;
        }
        case splits:
            p.splits = 2;
            break;
        case layout:
            p.layout_q.order = p.layout_k.order = AxisOrder::bthd;
            break;
        case mixed_formats:
            for (const kernel::Formats& one : formats)
                if (one.q != p.format_q) p.format_o = one.q;
            if (p.format_o == p.format_q) return std::nullopt;
            break;
        default:
            set_plain_fields(p, features_of(p).with(feature), {});
            break;
    }
    return canonical(p);
}

}  // namespace attest::search
