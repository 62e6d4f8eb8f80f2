// What a kernel's backward takes, where that is less than what its forward takes.

#include <algorithm>
#include <memory>
#include <utility>

#include "properties/search/prober.hpp"

namespace attest::search {

void Prober::narrow_gradients() {
    if (gradients_unjudged(capability_.numerics)) {  // nobody is asked for them then
        Capability none = capability_;
        none.gradients.clear();
        capability_.backward = std::make_shared<const Capability>(std::move(none));
        narrowed_.emplace_back(coarse_gradients);
        return;
    }
    std::vector<std::string> limits;
    Prober backward(*this, limits);
    backward.probe_backward();
    std::erase_if(limits, [&](const std::string& limit) {
        return std::find(narrowed_.begin(), narrowed_.end(), limit) != narrowed_.end();
    });
    if (limits.empty()) return;
    for (const std::string& limit : limits) narrowed_.push_back("gradients: " + limit);
    capability_.backward = std::make_shared<const Capability>(std::move(backward.capability_));
}

void Prober::probe_backward() {
    if (!find_differentiated()) {
        capability_.gradients.clear();
        narrowed_.push_back("refuses them, which it declares" + why());
        return;
    }
    narrow_dims();
    narrow_formats();
    narrow_numbers();
    narrow_features();
    find_outliers();
}

bool Prober::differentiates_at(std::int64_t queries, std::int64_t tokens, const Prober& forward) {
    base_.tokens = tokens;
    base_.len_q = queries;
    accepted_.clear();
    for (const Accepted& a : forward.accepted_)
        if (takes(problem_of(base_, a.formats, a.dims, capability_))) accepted_.push_back(a);
    return !accepted_.empty();
}

bool Prober::find_differentiated() {
    const Prober forward(*this, narrowed_);
    const std::int64_t own = base_.tokens, queries = base_.len_q;
    std::string reason;
    const auto at = [&](std::int64_t of_queries, std::int64_t tokens) {
        const bool taken = differentiates_at(of_queries, tokens, forward);
        if (!taken && reason.empty()) reason = reason_;
        return taken;
    };
    for (const std::int64_t tokens : {own, 32L, 16L, 8L, 4L, 2L}) {
        if (!at(queries == 1 ? 1 : tokens, tokens)) continue;
        // Twice as many queries as keys are asked about next: where they are refused, it must not
        // be for their number.
        Problem twice = plain();
        twice.len_q *= 2;
        const bool related = queries == 1 || capability_.found.queries != kernel::Queries::any;
        if (!related && !takes(twice) && !at(tokens / 2, tokens / 2)) at(tokens, tokens);
        return true;
    }
    for (const auto& [of_queries, tokens] :
         {std::pair{1L, own}, {1L, 1L}, {128L, 128L}, {256L, 256L}})
        if (at(of_queries, tokens)) return true;
    reason_ = reason;
    return false;
}

}  // namespace attest::search
