#pragma once
// Sets of features and of distributions that the cases of several families are drawn from.

#include <initializer_list>
#include <vector>

#include "properties/law/property.hpp"

namespace attest::law {

/// Attention itself: the laws of dropout judge what a random mask changes.
inline constexpr FeatureSet attention =
    FeatureSet::all().without(Feature::dropout).without(Feature::d_lse);

/// A sink takes part of the weight: without one the weights of a row sum to one.
inline constexpr FeatureSet sinkless = attention.without(Feature::sink);

/// Keys have no place: nothing depends on where they stand or what lies between them.
inline constexpr FeatureSet placeless = attention.without(Feature::causal)
                                            .without(Feature::window)
                                            .without(Feature::documents)
                                            .without(Feature::alibi)
                                            .without(Feature::rope);

/// The temperature divides the whole score: nothing is added to it, nothing caps it.
inline constexpr FeatureSet scaled_alone =
    sinkless.without(Feature::softcap).without(Feature::mask_additive).without(Feature::alibi);

/// Of a judgement that compared nothing.
inline constexpr const char* nothing_visible =
    "no query sees a key, or nothing is claimed of those that do";

/// What CaseSpace::require_any is where each of these features suffices.
inline std::vector<FeatureSet> any_of(std::initializer_list<Feature> features) {
    return {features.begin(), features.end()};
}

inline bool has_rows(const Problem& p) {
    return p.batch >= 1 && p.len_q >= 1 && p.len_kv >= 1;
}

/// What reads weights off a kernel calls it several times.
inline CaseSpace weighing_cases(FeatureSet allow) {
    return {.allow = allow, .cost = 4};
}

/// Distributions whose scores stay moderate: the bounds of two runs are then tight.
inline std::vector<ValueKind> moderate() {
    return {ValueKind::normal, ValueKind::uniform, ValueKind::small_int, ValueKind::flat,
            ValueKind::ties,   ValueKind::one_hot, ValueKind::const_v,   ValueKind::cancel_v};
}
inline CaseSpace moderate_cases(FeatureSet allow) {
    return {.allow = allow, .kinds = moderate(), .cost = 8};
}

}  // namespace attest::law
