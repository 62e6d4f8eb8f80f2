// The gradients where keys, queries and heads trade places: each follows what it is the gradient
// of.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "properties/law/case_sets.hpp"
#include "properties/law/gradient_cases.hpp"
#include "properties/law/gradient_pairs.hpp"
#include "properties/law/permuting.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// Where what stands at a place comes from.
struct Places {
    std::vector<std::int64_t> queries, keys, heads_q, heads_kv;

    explicit Places(const Trial& trial) {
        const Problem& p = trial.problem();
        const std::uint64_t stream = stream_of("gradients.permuted");
        queries = permutation(trial, stream, p.len_q, queries_everywhere(p));
        keys = permutation(trial, stream + 1, p.len_kv, keys_everywhere(p));
        heads_kv = permutation(trial, stream + 2, p.heads_kv);
        const std::int64_t group = group_size(p);
        // A query head follows its key head; inside the group they trade places.
        const auto within = permutation(trial, stream + 3, group);
        for (const std::int64_t g : heads_kv)
            for (const std::int64_t r : within) heads_q.push_back(g * group + r);
    }

    /// The order of an axis of a tensor; none where it has none of these.
    const std::vector<std::int64_t>* order(Role role, int axis) const {
        switch (role) {
            case Role::k:
            case Role::v:
            case Role::d_k:
            case Role::d_v:
                return axis == 1 ? &heads_kv : axis == 2 ? &keys : nullptr;
            case Role::sinks:
            case Role::d_sinks:
                return axis == 0 ? &heads_q : nullptr;
            case Role::mask:
            case Role::d_mask:
                if (axis == 3) return &keys;
                [[fallthrough]];
            default:
                return axis == 1 ? &heads_q : axis == 2 ? &queries : nullptr;
        }
    }

    TensorSet inputs(const Trial& trial) const {
        TensorSet moved = trial.inputs();
        for (const Role role :
             {Role::q, Role::k, Role::v, Role::mask, Role::sinks, Role::d_o, Role::d_lse})
            for (int axis = 0; moved.has(role) && axis < 4; ++axis)
                if (const auto* from = order(role, axis))
                    moved[role] = gather_unless_shared(moved[role], axis, *from);
        return moved;
    }
};

Judgement check_permuted(const Trial& trial) {
    const GradientRun first = run_of(trial);
    const Places from(trial);
    const GradientRun second(trial, trial.problem(), from.inputs(trial));
    Places to = from;
    for (auto* order : {&to.queries, &to.keys, &to.heads_q, &to.heads_kv}) *order = inverse(*order);
    const auto match = [&](Role role, std::int64_t flat) -> std::optional<std::int64_t> {
        const Shape& shape = first[role].shape();
        Shape place = index_of(shape, flat);
        std::int64_t at = 0;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            const auto* order = shape[axis] == 1 ? nullptr : to.order(role, static_cast<int>(axis));
            if (order != nullptr) place[axis] = (*order)[static_cast<std::size_t>(place[axis])];
            at = at * shape[axis] + place[axis];
        }
        return at;
    };
    return same_gradients(first, second, false, "when keys, queries and heads trade places", match);
}

bool something_moves(const Problem& p) {
    return has_rows(p) && (queries_everywhere(p) > 1 || keys_everywhere(p) > 1 || p.heads_q > 1);
}

}  // namespace

std::vector<Property> gradients_permuted() {
    CaseSpace unplaced = gradient_cases(8);
    unplaced.allow = unplaced.allow & placeless.with(Feature::d_lse);
    unplaced.admits = something_moves;
    return {gradient_law(
        "gradients.permuted",
        "Gradients follow their keys, queries and heads when these trade places.",
        "permuted inputs have permuted gradients",
        "Without positions every gradient is a sum over a set of pairs that know each other by "
        "what they hold: renaming keys, queries and heads renames dQ, dK, dV and the gradients of "
        "mask and sinks. The order of the sums is another, and both are within their bounds.",
        "Lee et al. 2019, Set Transformer, property 1; differentiation", std::move(unplaced),
        always<check_permuted>,
        {planted::last_key_without_gradient(), planted::group_overwritten()})};
}

}  // namespace attest::law
