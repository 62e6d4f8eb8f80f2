#include "reference/problem/feature.hpp"

#include <array>

namespace attest {
namespace {

constexpr std::array<std::string_view, feature_count> feature_names = {
    "causal",  "window", "lens_q", "lens_kv", "mask_bool", "mask_additive", "documents",
    "softcap", "sink",   "alibi",  "rope",    "dropout",   "gqa",           "dim_v",
    "scale",   "cache",  "paged",  "splits",  "layout",    "lse",           "mixed_formats"};

bool has_layout(const Problem& p) noexcept {
    const Layout plain;
    return p.layout_q != plain || p.layout_k != plain || p.layout_v != plain || p.layout_o != plain;
}

}  // namespace

std::string_view name(Feature feature) noexcept {
    return feature_names[static_cast<std::size_t>(feature)];
}

std::optional<Feature> parse_feature(std::string_view text) noexcept {
    for (std::size_t i = 0; i < feature_names.size(); ++i)
        if (feature_names[i] == text) return static_cast<Feature>(i);
    return std::nullopt;
}

FeatureSet features_of(const Problem& p) noexcept {
    const Mask& mask = p.mask;
    const std::array<std::pair<Feature, bool>, feature_count> uses = {{
        {Feature::causal, mask.causal},
        {Feature::window, mask.window.limited()},
        {Feature::lens_q, !mask.lens_q.empty()},
        {Feature::lens_kv, !mask.lens_kv.empty()},
        {Feature::mask_bool, mask.tensor.kind == MaskKind::boolean},
        {Feature::mask_additive, mask.tensor.kind == MaskKind::additive},
        {Feature::documents, !mask.documents_q.empty() || !mask.documents_kv.empty()},
        {Feature::softcap, p.softcap != 0.0},
        {Feature::sink, p.sink},
        {Feature::alibi, p.alibi},
        {Feature::rope, p.rope.style != RopeStyle::none},
        {Feature::dropout, p.dropout.p != 0.0},
        {Feature::gqa, p.heads_q != p.heads_kv},
        {Feature::dim_v, value_dim(p) != p.dim_qk},
        {Feature::scale, p.scale.has_value()},
        {Feature::cache, p.cache.present},
        {Feature::paged, p.cache.present && p.cache.page_size != 0},
        {Feature::splits, p.splits != 0},
        {Feature::layout, has_layout(p)},
        {Feature::lse, p.want_lse},
        {Feature::mixed_formats, p.format_kv != p.format_q || p.format_o != p.format_q},
    }};
    FeatureSet set;
    for (const auto& [feature, used] : uses)
        if (used) set = set.with(feature);
    return set;
}

}  // namespace attest
