#pragma once
// Features: the optional parts of a Problem, by the names a manifest declares them under. A
// generator draws only what the kernel declares; coverage counts pairs of them; the shrinker
// switches them off one by one.

#include <cstdint>
#include <optional>
#include <string_view>

#include "reference/problem/problem.hpp"

namespace attest {

enum class Feature : std::uint8_t {
    causal,
    window,
    lens_q,
    lens_kv,
    mask_bool,
    mask_additive,
    documents,
    softcap,
    sink,
    alibi,
    rope,
    dropout,
    gqa,
    dim_v,
    scale,
    cache,
    paged,
    splits,
    layout,
    lse,
    mixed_formats,
    keys_rotated,
    d_lse,
    ring,
    negative_scale
};
inline constexpr int feature_count = 25;
std::string_view name(Feature feature) noexcept;
std::optional<Feature> parse_feature(std::string_view text) noexcept;

/// A set of features, as bits.
class FeatureSet {
public:
    constexpr FeatureSet() = default;
    template <typename... F>
    constexpr explicit FeatureSet(Feature first, F... rest)
        : bits_(bit(first) | (0u | ... | bit(rest))) {}
    static constexpr FeatureSet all() {
        FeatureSet s;
        s.bits_ = (1u << feature_count) - 1;
        return s;
    }
    constexpr bool has(Feature f) const noexcept { return (bits_ & bit(f)) != 0; }
    constexpr FeatureSet with(Feature f) const noexcept {
        FeatureSet s = *this;
        s.bits_ |= bit(f);
        return s;
    }
    constexpr FeatureSet without(Feature f) const noexcept {
        FeatureSet s = *this;
        s.bits_ &= ~bit(f);
        return s;
    }
    constexpr FeatureSet operator|(FeatureSet o) const noexcept {
        FeatureSet s = *this;
        s.bits_ |= o.bits_;
        return s;
    }
    constexpr FeatureSet operator&(FeatureSet o) const noexcept {
        FeatureSet s = *this;
        s.bits_ &= o.bits_;
        return s;
    }
    constexpr bool contains(FeatureSet o) const noexcept { return (bits_ & o.bits_) == o.bits_; }
    constexpr std::uint32_t bits() const noexcept { return bits_; }
    bool operator==(const FeatureSet&) const = default;

private:
    static constexpr std::uint32_t bit(Feature f) noexcept {
        return 1u << static_cast<unsigned>(f);
    }
    std::uint32_t bits_ = 0;
};

/// Every feature the problem uses. lse counts where it is asked for; gqa where heads_q != heads_kv.
FeatureSet features_of(const Problem& problem) noexcept;

}  // namespace attest
