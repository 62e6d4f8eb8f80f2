// Whether a case is one that a law is tried on and this kernel can be asked for.

#include <algorithm>

#include "properties/search/derive.hpp"
#include "properties/search/features.hpp"

namespace attest::search {

void fit(Problem& p, const Capability& capability) {
    kernel::fit(p, capability.takes);
    kernel::spread(p, capability.found);
    MaskPattern& pattern = p.mask.tensor.pattern;
    if (capability.dialect.empty_row == EmptyRow::refuse && pattern == MaskPattern::empty_rows)
        pattern = MaskPattern::one_key;
    Window& window = p.mask.window;
    if (!capability.window_right && window.limited())
        window = {.left = std::max(window.left, window.right), .right = -1};
}

bool in_space(const law::Property& property, const Capability& all, const Problem& problem) {
    const Capability& capability = taken_by(property, all);
    if (property.needs.backward && !problem.want_grad) return false;
    Problem p = problem;
    fit(p, capability);
    // Of a call without an axis nothing is to be compared.
    if (p != problem || p.len_q < 1 || p.len_kv < 1 || kernel::refusal(capability, p) ||
        kernel::refusal(capability.found, p) || capability.refuses(p))
        return false;
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
    allowed = allowed | kernel::inherent_features(capability, p);
    if (allowed.has(Feature::paged)) allowed = allowed.with(Feature::cache);
    // As it is drawn: a law that is tried on no cache is tried on no ring.
    if (!allowed.has(Feature::cache)) allowed = allowed.without(Feature::ring);
    if (property.needs.lse) allowed = allowed.with(Feature::lse);
    if (!has_alternative || !features.contains(space.require) || !allowed.contains(features))
        return false;
    if (property.needs.lse && !p.want_lse) return false;
    if (!space.formats.empty() &&
        std::find(space.formats.begin(), space.formats.end(), p.format_q) == space.formats.end())
        return false;
    const std::int64_t dim_least = capability.dims.empty() ? 1 : capability.dims.front();
    const auto within = [](std::int64_t size, std::int64_t most, std::int64_t least) {
        return most == 0 || size <= std::max(most, least);
    };
    const std::int64_t dim = std::max(p.dim_qk, value_dim(p)), len = std::max(p.len_q, p.len_kv);
    const Problem least = capability.smallest(p.len_q == p.len_kv);
    return within(len, capability.len_max, 0) &&
           within(len, space.len_max, std::max(least.len_q, least.len_kv)) &&
           within(score_count(p), space.scores_max, score_count(least)) &&
           within(dim - 1, capability.dim_max, dim_least) &&  // rope: even
           within(dim - 1, space.dim_max, dim_least) &&
           within(p.batch, space.batch_max, least.batch) && (!space.len_q_one || p.len_q == 1) &&
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
    everything.gradients = {std::begin(gradient_roles), std::end(gradient_roles)};
    return in_space(property, declared_capability(everything), tried.problem) &&
           in_space(property, tried.values);
}

}  // namespace attest::search
