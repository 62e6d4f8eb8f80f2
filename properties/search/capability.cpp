#include "properties/search/capability.hpp"

#include <algorithm>

#include "properties/search/features.hpp"
#include "properties/search/landmarks.hpp"
#include "reference/problem/errors.hpp"

namespace attest {

namespace {

std::string names(FeatureSet set, const char* separator = ", ") {
    std::string text;
    for (int bit = 0; bit < feature_count; ++bit) {
        const auto feature = static_cast<Feature>(bit);
        if (!set.has(feature)) continue;
        if (!text.empty()) text += separator;
        text += name(feature);
    }
    return text;
}

std::string list(const std::vector<std::int64_t>& numbers) {
    std::string text;
    for (const std::int64_t number : numbers)
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text;
}

/// The smallest problem no kernel has a reason to refuse, but for its format and head dimension.
Problem plain_problem(Precision format, std::int64_t dim) {
    constexpr std::int64_t tokens = 64;  // a multiple of every tile's granularity
    Problem problem;
    problem.len_q = problem.len_kv = tokens;
    problem.dim_qk = dim;
    problem.format_q = problem.format_kv = problem.format_o = format;
    problem.want_lse = false;
    return problem;
}

class Prober {
public:
    Prober(Subject& kernel, Capability capability, std::vector<std::string>& narrowed)
        : kernel_(kernel), capability_(std::move(capability)), narrowed_(narrowed) {}

    Capability probe() {
        find_accepted();
        if (accepted_.empty()) return capability_;  // says no to everything: refusals will tell
        narrow_dims();
        narrow_formats();
        narrow_features();
        narrow_window();
        return capability_;
    }

private:
    struct Accepted {
        Precision format;
        std::int64_t dim;
    };

    bool takes(const Problem& problem) {
        std::string reason;
        if (kernel_.supports(problem, &reason)) return true;
        if (!reason.empty()) reason_ = reason;
        return false;
    }

    void find_accepted() {
        for (const Precision format : capability_.formats)
            for (const std::int64_t dim : landmark_dims()) {
                if (capability_.dim_max > 0 && dim > capability_.dim_max) continue;
                tried_dims_.push_back(dim);
                if (takes(plain_problem(format, dim))) accepted_.push_back({format, dim});
            }
        std::sort(tried_dims_.begin(), tried_dims_.end());
        tried_dims_.erase(std::unique(tried_dims_.begin(), tried_dims_.end()), tried_dims_.end());
    }

    bool any_accepted(std::optional<Precision> format, std::optional<std::int64_t> dim) const {
        return std::any_of(accepted_.begin(), accepted_.end(), [&](const Accepted& a) {
            return (!format || a.format == *format) && (!dim || a.dim == *dim);
        });
    }

    void narrow_dims() {
        std::vector<std::int64_t> taken;
        for (const std::int64_t dim : tried_dims_)
            if (any_accepted(std::nullopt, dim)) taken.push_back(dim);
        if (taken.size() == tried_dims_.size()) return;
        capability_.dims = taken;
        narrowed_.push_back("head dimension: takes " + list(taken) + " alone" + why());
    }

    void narrow_formats() {
        std::vector<Precision> taken;
        for (const Precision format : capability_.formats) {
            if (any_accepted(format, std::nullopt))
                taken.push_back(format);
            else
                narrowed_.push_back("format: refuses " + std::string(name(format)) +
                                    ", which it declares" + why());
        }
        capability_.formats = taken;
    }

    /// A feature nobody declared is drawn unless it is refused with every accepted format and the
    /// middle one of its head dimensions.
    void narrow_features() {
        FeatureSet refused;
        for (int bit = 0; bit < feature_count; ++bit) {
            const auto feature = static_cast<Feature>(bit);
            if (!capability_.features.has(feature) || declared(feature)) continue;
            if (!takes_feature(feature)) refused = refused.with(feature);
        }
        if (refused == FeatureSet{}) return;
        for (int bit = 0; bit < feature_count; ++bit)
            if (refused.has(static_cast<Feature>(bit)))
                capability_.features = capability_.features.without(static_cast<Feature>(bit));
        narrowed_.push_back("features: refuses " + names(refused) + why());
    }

    bool declared(Feature feature) const {
        const Manifest& manifest = kernel_.manifest();
        return manifest.features_declared && manifest.features.has(feature);
    }

    /// Many kernels know windows to the left alone, and the manifest has no word for that.
    void narrow_window() {
        if (!capability_.features.has(Feature::window)) return;
        const Accepted plain = accepted_[accepted_.size() / 2];
        Problem left = plain_problem(plain.format, plain.dim), both = left;
        left.mask.window = {.left = 8, .right = -1};
        both.mask.window = {.left = 8, .right = 8};
        if (!takes(left) || takes(both)) return;
        capability_.window_right = false;
        narrowed_.push_back("window: takes limits to the left alone" + why());
    }

    bool takes_feature(Feature feature) {
        const std::int64_t dim = accepted_[accepted_.size() / 2].dim;
        for (const Precision format : capability_.formats) {
            const auto problem =
                with_plain_feature(plain_problem(format, dim), feature, capability_.formats);
            if (!problem || takes(*problem)) return true;
        }
        return false;
    }

    std::string why() const { return reason_.empty() ? "" : " (" + reason_ + ")"; }

    Subject& kernel_;
    Capability capability_;
    std::vector<std::string>& narrowed_;
    std::vector<Accepted> accepted_;
    std::vector<std::int64_t> tried_dims_;
    std::string reason_;
};

}  // namespace

Capability declared_capability(const Manifest& manifest) {
    Capability capability;
    capability.formats = manifest.formats;
    capability.features = offered_features(manifest);
    // As the session: who declares features, and layout not among them, may count on alignment.
    capability.any_alignment =
        !manifest.features_declared || manifest.features.has(Feature::layout);
    capability.simulated = manifest.simulated;
    capability.dialect = manifest.dialect;
    capability.numerics = manifest.numerics;
    capability.dim_max = manifest.limits.dim_max;
    capability.len_max = manifest.limits.len_max;
    return capability;
}

Capability probed_capability(Subject& kernel, std::vector<std::string>& narrowed) {
    return Prober(kernel, declared_capability(kernel.manifest()), narrowed).probe();
}

std::vector<Precision> formats_of(const CaseSpace& space, const Capability& capability) {
    std::vector<Precision> had = capability.formats;
    std::erase_if(had, [&](Precision format) {
        return !space.formats.empty() &&
               std::find(space.formats.begin(), space.formats.end(), format) == space.formats.end();
    });
    return had;
}

std::vector<FeatureSet> alternatives(const CaseSpace& space, const Capability& capability) {
    if (space.require_any.empty()) return {FeatureSet{}};
    std::vector<FeatureSet> had;
    for (const FeatureSet& set : space.require_any)
        if (capability.features.contains(set)) had.push_back(set);
    return had;
}

std::optional<std::string> why_not_applicable(const Property& property,
                                              const Capability& capability) {
    const Needs& needs = property.needs;
    if (needs.backward) return "kernel has no backward";
    if (needs.lse && !capability.features.has(Feature::lse)) return "kernel returns no log-sum-exp";
    if (needs.deterministic && !capability.numerics.deterministic)
        return "kernel does not claim to be deterministic";
    if (needs.batch_invariant && !capability.numerics.batch_invariant)
        return "kernel does not claim batch invariance";
    if (needs.simulated && !capability.simulated)
        return "its threads run under no schedule that attest could choose";
    const CaseSpace& space = property.cases;
    FeatureSet missing;
    for (int bit = 0; bit < feature_count; ++bit) {
        const auto feature = static_cast<Feature>(bit);
        if (space.require.has(feature) && !capability.features.has(feature))
            missing = missing.with(feature);
    }
    if (missing != FeatureSet{}) return "kernel does not declare " + names(missing);
    if (alternatives(space, capability).empty()) {
        std::string sets;
        for (const FeatureSet& set : space.require_any)
            sets += (sets.empty() ? "" : ", ") + names(set, " with ");
        return "kernel declares none of: " + sets;
    }
    if (capability.formats.empty()) return "kernel declares no format";
    if (formats_of(space, capability).empty()) {
        std::string list;
        for (const Precision format : space.formats)
            list += (list.empty() ? "" : ", ") + std::string(name(format));
        return "kernel takes none of " + list;
    }
    return std::nullopt;
}

}  // namespace attest
