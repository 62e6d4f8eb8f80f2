#include "reference/problem/feature.hpp"

#include <array>

#include "reference/problem/fields.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, feature_count> feature_names = {
    "causal",        "window",       "lens_q",  "lens_kv", "mask_bool",
    "mask_additive", "documents",    "softcap", "sink",    "alibi",
    "rope",          "dropout",      "gqa",     "dim_v",   "scale",
    "cache",         "paged",        "splits",  "layout",  "lse",
    "mixed_formats", "keys_rotated", "d_lse",   "ring",    "negative_scale"};

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
    FeatureSet set;
    for (const Field& field : fields())
        for (const FeatureUse& use : {field.use, field.other_use})
            if (use.feature && (use.when != nullptr ? use.when(p) : !field.is_default(p)))
                set = set.with(*use.feature);
    return set;
}

}  // namespace attest
