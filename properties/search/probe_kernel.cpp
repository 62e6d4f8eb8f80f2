// Asks supports() what a kernel takes, before the first case.
#include <fmt/format.h>

#include <algorithm>

#include "properties/search/features.hpp"
#include "properties/search/landmarks.hpp"
#include "properties/search/prober.hpp"
#include "properties/search/shrink_moves.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

Capability Prober::probe() {
    std::vector<Dims> alike, unequal;
    const auto& told = capability_.dims;
    for (const std::int64_t dim : told.empty() ? landmark_dims() : told) alike.push_back({dim, 0});
    for (const auto& [qk, v] : unequal_dims()) unequal.push_back({qk, v});
    if (!find_accepted(alike)) find_accepted(unequal);
    if (accepted_.empty()) return capability_;  // says no to everything: refusals will tell
    narrow_always();
    narrow_dims();
    narrow_formats();
    narrow_numbers();
    tell_empty_axes();
    narrow_features();
    narrow_window();
    find_outliers();
    for (std::string& refusal : learn_refusals(kernel_, capability_))
        narrowed_.push_back(std::move(refusal));
    if (!capability_.gradients.empty()) narrow_gradients();
    return capability_;
}

bool Prober::takes(const Problem& problem) {
    std::string reason;
    Problem asked = problem;
    asked.want_grad = want_grad_;
    if (is_none(asked)) return false;
    repair(asked);
    if (kernel_.supports(asked, &reason)) return true;
    if (!reason.empty()) reason_ = reason;
    return false;
}

bool Prober::is_none(Problem problem) {
    repair(problem);  // lengths, documents and a cache of what was varied
    return find_contradiction(problem).has_value();
}

bool Prober::find_accepted(std::vector<Dims> dims) {
    std::erase_if(dims, [&](const Dims& d) {
        return (capability_.dim_max > 0 && std::max(d.qk, d.v) > capability_.dim_max) ||
               (d.v > 0 && !capability_.features.has(Feature::dim_v));
    });
    for (const Base& base : bases(capability_.features)) {
        base_ = base;
        tried_dims_ = dims;
        // What does not exist is not refused: an odd dimension whose channels are all rotated.
        std::erase_if(tried_dims_, [&](const Dims& d) {
            const Problem own = problem_of(base_, capability_.formats.front(), d, capability_);
            return is_none(own) || !features_of(own).contains(capability_.takes.always);
        });
        for (const kernel::Formats& formats : capability_.formats)
            for (const Dims& d : tried_dims_)
                if (takes(problem_of(base_, formats, d, capability_)))
                    accepted_.push_back({formats, d});
        if (!accepted_.empty()) return true;
    }
    return false;
}

bool Prober::any_accepted(std::optional<kernel::Formats> formats,
                          std::optional<std::int64_t> dim) const {
    return std::any_of(accepted_.begin(), accepted_.end(), [&](const Accepted& a) {
        return (!formats || a.formats == *formats) && (!dim || a.dims.qk == *dim);
    });
}

Problem Prober::plain(std::optional<kernel::Formats> formats) const {
    const Accepted& middle = accepted_[accepted_.size() / 2];
    return problem_of(base_, formats.value_or(middle.formats), middle.dims, capability_);
}

void Prober::narrow_always() {
    if (accepted_.front().dims.v > 0) base_.features = base_.features.with(Feature::dim_v);
    capability_.always = capability_.always | base_.features;
    if (base_.features != FeatureSet{})
        narrowed_.push_back("features: nothing without " + names(base_.features) + why());
}

void Prober::narrow_numbers() {
    const auto taken = [this](const Problem& p) { return takes(p); };
    const kernel::NumberSet pages = capability_.found[kernel::Quantity::page_size];
    const FeatureSet features = capability_.features;
    capability_.found =
        probed_numbers(plain(), want_grad_ ? features.without(Feature::paged) : features,
                     capability_.takes, taken);
    if (want_grad_) capability_.found[kernel::Quantity::page_size] = pages;
    const std::vector<std::string> told = kernel::described(capability_.takes);
    for (const std::string& limit : kernel::described(capability_.found))
        if (std::find(told.begin(), told.end(), limit) == told.end()) narrowed_.push_back(limit);
}

void Prober::tell_empty_axes() {
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

void Prober::narrow_dims() {
    std::vector<std::int64_t> taken;
    std::int64_t below = 0;  // of those tried, not above the largest that is taken
    for (const Dims& d : tried_dims_)
        if (any_accepted(std::nullopt, d.qk)) taken.push_back(d.qk);
    for (const Dims& d : tried_dims_) below += d.qk <= taken.back();
    if (accepted_.front().dims.v > 0) {  // of certain pairs alone
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

void Prober::ask_unequal_dims() {
    capability_.unequal_dims.clear();
    std::string text;
    const Accepted& any = accepted_.front();
    for (const auto& [qk, v] : unequal_dims()) {
        const Problem with = problem_of(base_, any.formats, {qk, v}, capability_);
        if (with.dim_qk != qk || value_dim(with) != v || !takes(with)) continue;
        capability_.unequal_dims.emplace_back(qk, v);
        text += (text.empty() ? "" : ", ") + std::to_string(qk) + " beside " + std::to_string(v);
    }
    if (!text.empty()) narrowed_.push_back("head dimensions of queries beside values: " + text);
}

void Prober::narrow_formats() {
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

void Prober::narrow_features() {
    FeatureSet refused;
    for (int bit = 0; bit < feature_count; ++bit) {
        const auto feature = static_cast<Feature>(bit);
        if (!capability_.features.has(feature) || base_.features.has(feature) ||
            takes_feature(feature))
            continue;
        refused = refused.with(feature);
        capability_.features = capability_.features.without(feature);
    }
    capability_.refused = capability_.refused | refused;
    if (want_grad_)  // nobody differentiates caches: no law asks for that
        for (const Feature f :
             {Feature::cache, Feature::paged, Feature::keys_rotated, Feature::ring})
            refused = refused.without(f);
    if (refused == FeatureSet{}) return;
    narrowed_.push_back((want_grad_
                             ? "refuses those of " + names(refused)
                             : "features: refuses " + names(refused) + ", which it declares") +
                        why());
}

void Prober::narrow_window() {
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

bool Prober::takes_feature(Feature feature) {
    for (const kernel::Formats& formats : capability_.formats) {
        Problem problem = plain(formats);
        problem.want_grad = want_grad_;
        auto with = with_plain_feature(problem, feature, capability_.formats);
        if (with) kernel::fit(*with, capability_.takes);
        if (!with || is_none(*with) || takes(*with) || takes_otherwise(*with, feature)) return true;
        with->mask.causal = capability_.features.has(Feature::causal);
        if (takes(*with)) return true;
    }
    return false;
}

bool Prober::takes_otherwise(Problem problem, Feature feature) {
    const auto& page_sizes = capability_.found[kernel::Quantity::page_size].only;
    const auto& groups = capability_.found[kernel::Quantity::group].only;
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

void Prober::find_outliers() {
    const std::string reason = reason_;
    capability_.outliers =
        outliers_taken(plain(), capability_, [this](const Problem& p) { return takes(p); });
    reason_ = reason;
}

Capability probed_capability(Kernel& kernel, std::vector<std::string>& narrowed) {
    return Prober(kernel, declared_capability(kernel.manifest()), narrowed).probe();
}

}  // namespace attest::search
