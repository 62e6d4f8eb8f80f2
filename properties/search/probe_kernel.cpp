// Asks supports() what a kernel takes, before the first case.
#include <fmt/format.h>

#include <algorithm>

#include "properties/search/capability.hpp"
#include "properties/search/features.hpp"
#include "properties/search/landmarks.hpp"
#include "properties/search/probe_base.hpp"
#include "properties/search/shrink_moves.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

class Prober {
public:
    Prober(Kernel& kernel, Capability capability, std::vector<std::string>& narrowed)
        : kernel_(kernel), capability_(std::move(capability)), narrowed_(narrowed) {}

    Capability probe() {
        std::vector<Dims> alike, unequal;
        const auto& told = capability_.dims;
        for (const std::int64_t dim : told.empty() ? landmark_dims() : told)
            alike.push_back({dim, 0});
        for (const auto& [qk, v] : unequal_dims()) unequal.push_back({qk, v});
        if (!find_accepted(alike)) find_accepted(unequal);
        if (accepted_.empty()) return capability_;  // says no to everything: refusals will tell
        narrow_always();
        narrow_dims();
        narrow_formats();
        narrow_geometry();
        tell_empty_axes();
        narrow_features();
        narrow_window();
        find_outliers();
        for (std::string& refusal : learn_refusals(kernel_, capability_))
            narrowed_.push_back(std::move(refusal));
        if (!capability_.gradients.empty()) narrow_gradients();
        return capability_;
    }

private:
    struct Accepted {
        kernel::Formats formats;
        Dims dims;
    };

    bool takes(const Problem& problem) {
        std::string reason;
        Problem asked = problem;
        asked.want_grad = want_grad_;
        if (is_none(asked)) return false;
        repair(asked);
        if (kernel_.supports(asked, &reason)) return true;
        if (!reason.empty()) reason_ = reason;
        return false;
    }

    /// Whether this is no problem: what always comes with the kernel admits no such one.
    static bool is_none(Problem problem) {
        repair(problem);  // lengths, documents and a cache of what was varied
        return find_contradiction(problem).has_value();
    }

    /// Finds the first base that is taken with some of these head dimensions.
    bool find_accepted(std::vector<Dims> dims) {
        std::erase_if(dims, [&](const Dims& d) {
            return (capability_.dim_max > 0 && std::max(d.qk, d.v) > capability_.dim_max) ||
                   (d.v > 0 && !capability_.features.has(Feature::dim_v));
        });
        tried_dims_ = std::move(dims);
        for (const Base& base : bases(capability_.features)) {
            base_ = base;
            for (const kernel::Formats& formats : capability_.formats)
                for (const Dims& d : tried_dims_)
                    if (takes(problem_of(base_, formats, d, capability_)))
                        accepted_.push_back({formats, d});
            if (!accepted_.empty()) return true;
        }
        return false;
    }

    bool any_accepted(std::optional<kernel::Formats> formats,
                      std::optional<std::int64_t> dim) const {
        return std::any_of(accepted_.begin(), accepted_.end(), [&](const Accepted& a) {
            return (!formats || a.formats == *formats) && (!dim || a.dims.qk == *dim);
        });
    }

    /// A problem that is taken, of the middle one of the head dimensions.
    Problem plain() const {
        const Accepted& middle = accepted_[accepted_.size() / 2];
        return problem_of(base_, middle.formats, middle.dims, capability_);
    }

    void narrow_always() {
        if (accepted_.front().dims.v > 0) base_.features = base_.features.with(Feature::dim_v);
        capability_.always = capability_.always | base_.features;
        if (base_.features != FeatureSet{})
            narrowed_.push_back("features: nothing without " + names(base_.features) + why());
    }

    void narrow_geometry() {
        capability_.geometry = probed_geometry(plain(), capability_.features,
                                               [this](const Problem& p) { return takes(p); });
        const std::vector<std::string> told = kernel::described(capability_.takes);
        for (const std::string& limit : described(capability_.geometry))
            if (std::find(told.begin(), told.end(), limit) == told.end())
                narrowed_.push_back(limit);
    }

    /// Nothing is drawn so; a law asks for it.
    void tell_empty_axes() {
        struct Axis {
            kernel::Quantity quantity;
            std::int64_t Problem::*extent;
            const char* name;
        };
        std::vector<std::string> refused;
        for (const auto& [quantity, extent, axis] :
             {Axis{kernel::Quantity::batch, &Problem::batch, "sequences"},
              Axis{kernel::Quantity::len_q, &Problem::len_q, "queries"},
              Axis{kernel::Quantity::len_kv, &Problem::len_kv, "keys"}}) {
            Problem without = plain();
            without.*extent = 0;
            if (is_none(without)) continue;
            repair(without);
            if (!kernel::refusal(capability_.takes, without) && !takes(without))
                refused.emplace_back(axis);
        }
        if (!refused.empty())
            narrowed_.push_back(fmt::format("calls without {}: refused", fmt::join(refused, ", ")) +
                                why());
    }

    void narrow_dims() {
        std::vector<std::int64_t> taken;
        std::int64_t below = 0;  // of those tried, not above the largest that is taken
        for (const Dims& d : tried_dims_)
            if (any_accepted(std::nullopt, d.qk)) taken.push_back(d.qk);
        for (const Dims& d : tried_dims_) below += d.qk <= taken.back();
        if (capability_.always.has(Feature::dim_v)) {
            capability_.dims = taken;
            return ask_unequal_dims();
        }
        if (taken.size() == tried_dims_.size()) return;
        if (static_cast<std::int64_t>(taken.size()) == below) {
            capability_.dim_max = taken.back();
            narrowed_.push_back("head dimension: up to " + std::to_string(taken.back()));
            return;
        }
        capability_.dims = taken;
        narrowed_.push_back(fmt::format("head dimension: {}", fmt::join(taken, ", ")));
    }

    /// Not any head dimension of the values, but those of real models.
    void ask_unequal_dims() {
        std::string text;
        const Accepted& any = accepted_.front();
        for (const auto& [qk, v] : unequal_dims()) {
            const Problem with = problem_of(base_, any.formats, {qk, v}, capability_);
            if (with.dim_qk != qk || value_dim(with) != v || !takes(with)) continue;
            capability_.unequal_dims.emplace_back(qk, v);
            text +=
                (text.empty() ? "" : ", ") + std::to_string(qk) + " beside " + std::to_string(v);
        }
        if (!text.empty()) narrowed_.push_back("head dimensions of queries beside values: " + text);
    }

    void narrow_formats() {
        std::vector<kernel::Formats> taken;
        for (const kernel::Formats& formats : capability_.formats) {
            if (any_accepted(formats, std::nullopt))
                taken.push_back(formats);
            else
                narrowed_.push_back("format: refuses " + words(formats) + ", which it declares" +
                                    why());
        }
        capability_.formats = taken;
    }

    /// Not drawn: what is refused with every accepted format and the middle one of its dimensions.
    void narrow_features() {
        FeatureSet& refused = capability_.refused;
        for (int bit = 0; bit < feature_count; ++bit) {
            const auto feature = static_cast<Feature>(bit);
            if (!capability_.features.has(feature) || base_.features.has(feature) ||
                takes_feature(feature))
                continue;
            refused = refused.with(feature);
            capability_.features = capability_.features.without(feature);
        }
        if (refused != FeatureSet{})
            narrowed_.push_back("features: refuses " + names(refused) + ", which it declares" +
                                why());
    }

    /// Many kernels know windows to the left alone, and the manifest has no word for that.
    void narrow_window() {
        if (!capability_.features.has(Feature::window) ||
            !capability_.takes[kernel::Quantity::window_right].any())
            return;
        Problem left = plain(), both = left;
        left.mask.window = {.left = 8, .right = -1};
        both.mask.window = {.left = 8, .right = 8};
        if (!takes(left) || takes(both)) return;
        capability_.window_right = false;
        narrowed_.push_back("window: takes limits to the left alone" + why());
    }

    /// Gradients of everything else are taken, or of less.
    void narrow_gradients() {
        want_grad_ = true;
        Capability own = capability_;
        const bool taken = takes(plain());
        if (!taken) own.gradients.clear();
        if (!taken) narrowed_.push_back("gradients: refuses them, which it declares" + why());
        FeatureSet refused;
        for (int bit = 0; taken && bit < feature_count; ++bit) {
            const auto feature = static_cast<Feature>(bit);
            if (!own.features.has(feature) || base_.features.has(feature) || takes_feature(feature))
                continue;
            refused = refused.with(feature);
            own.features = own.features.without(feature);
        }
        own.refused = own.refused | refused;
        // Nobody differentiates caches: no law asks for that.
        const FeatureSet told = refused.without(Feature::cache)
                                    .without(Feature::paged)
                                    .without(Feature::keys_rotated)
                                    .without(Feature::ring);
        if (taken && told == FeatureSet{}) return;
        if (told != FeatureSet{})
            narrowed_.push_back("gradients: refuses those of " + names(told) + why());
        capability_.backward = std::make_shared<const Capability>(std::move(own));
    }

    bool takes_feature(Feature feature) {
        for (const kernel::Formats& formats : capability_.formats) {
            Problem problem = plain();
            problem.format_q = formats.q;
            problem.format_kv = formats.kv;
            problem.format_o = formats.o;
            problem.want_grad = want_grad_;
            auto with = with_plain_feature(problem, feature, capability_.formats);
            if (with) kernel::fit(*with, capability_.takes);
            if (!with || is_none(*with) || takes(*with) || takes_otherwise(*with, feature))
                return true;
            with->mask.causal = capability_.features.has(Feature::causal);
            if (takes(*with)) return true;
        }
        return false;
    }

    /// Not pages of 16, but others; not a group of two, but a larger one.
    bool takes_otherwise(Problem problem, Feature feature) {
        const auto& page_sizes = capability_.geometry.page_sizes;
        const auto& groups = capability_.geometry.groups;
        if (feature == Feature::dim_v) {
            ask_unequal_dims();
            return !capability_.unequal_dims.empty();
        }
        if (feature == Feature::paged && !page_sizes.empty()) {
            problem.cache.page_size = page_sizes.back();
            return takes(problem);
        }
        if (feature != Feature::gqa || groups.empty()) return false;
        problem.heads_q = problem.heads_kv * groups.back();
        return groups.back() > 1 && takes(problem);
    }

    void find_outliers() {
        const std::string reason = reason_;
        capability_.outliers =
            outliers_taken(plain(), capability_, [this](const Problem& p) { return takes(p); });
        reason_ = reason;
    }

    std::string why() const { return reason_.empty() ? "" : " (" + reason_ + ")"; }

    Kernel& kernel_;
    Capability capability_;
    std::vector<std::string>& narrowed_;
    Base base_{};
    std::vector<Accepted> accepted_;
    std::vector<Dims> tried_dims_;
    std::string reason_;
    bool want_grad_ = false;
};

}  // namespace

Capability probed_capability(Kernel& kernel, std::vector<std::string>& narrowed) {
    return Prober(kernel, declared_capability(kernel.manifest()), narrowed).probe();
}

}  // namespace attest::search
