#include "kernels/worker/call_layout.hpp"

#include <cmath>

#include "kernels/worker/patterns.hpp"
#include "reference/problem/empty_slots.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/feature.hpp"

namespace attest::worker {
namespace {

bool is_output_gradient(Role role) {
    return role == Role::d_o || role == Role::d_lse;
}

/// Forward's own outputs, and their gradients, are inputs of backward alone.
bool is_read(Role role, protocol::Operation operation) {
    if (role == Role::dropout_keep) return false;  // what is known of it is the host's alone
    const bool of_backward = role == Role::o || role == Role::lse || is_output_gradient(role);
    return !of_backward || operation == protocol::Operation::backward;
}

bool is_of_lse(Role role) {
    return role == Role::lse || role == Role::d_lse;
}

bool lse_lies_apart(const kernel::Manifest& manifest, Role role) {
    return is_of_lse(role) && manifest.takes.lse_order == kernel::LseOrder::bht;
}

/// As the problem has it, but for what the kernel has in an order of its own.
Placement placed(const kernel::Manifest& manifest, const Problem& problem, Role role,
                 ElementType type, const Shape& shape) {
    const bool apart =
        lse_lies_apart(manifest, role) || (role == Role::mask && !manifest.takes.orders.empty());
    return place(role, type, shape, apart ? Layout{} : layout_of(problem, role));
}

/// Where tensors may have any strides, a dO or dLSE that is one number everywhere is one element in
/// memory: the gradient of a sum, as frameworks hand it over.
bool is_expanded(const kernel::Manifest& manifest, const Problem& problem, Role role,
                 const Tensor& tensor) {
    const bool any_strides =
        manifest.features.has(Feature::layout) && manifest.takes.orders.empty();
    if (!is_output_gradient(role) || !any_strides || lse_lies_apart(manifest, role) ||
        !features_of(problem).has(Feature::layout))
        return false;
    for (std::int64_t at = 1; at < tensor.size(); ++at)
        if (!(tensor.get(at) == tensor.get(0))) return false;
    return tensor.size() > 0;
}

void add_slots(Arena& arena, const kernel::Manifest& manifest, const Problem& problem,
               const TensorSet& inputs, std::uint64_t workspace_bytes, const Asked& asked) {
    arena.clear();
    for (std::size_t r = 0; r < role_count; ++r) {
        const auto role = static_cast<Role>(r);
        if (!inputs.has(role) || !is_read(role, asked.operation)) continue;
        const Tensor& tensor = inputs[role];
        require(tensor.type() == type_of(problem, role),
                "an input has the element type that its problem says");
        const Shape shape = cache_shape_of(problem, role).value_or(tensor.shape());
        const bool expanded = is_expanded(manifest, problem, role, tensor);
        arena.add(role, protocol::Access::read,
                  expanded ? place_expanded(role, tensor.type(), shape)
                           : placed(manifest, problem, role, tensor.type(), shape));
    }
    for (Role role : asked.outputs) {
        if (const std::optional<Shape> shape = shape_of(problem, role)) {
            arena.add(role, protocol::Access::write,
                      placed(manifest, problem, role, type_of(problem, role), *shape));
        }
    }
    if (workspace_bytes != 0) arena.add_workspace(workspace_bytes);
}

/// Before the keys are laid into some of its slots.
void fill_all_slots(const Placement& placement, double number, std::byte* memory) {
    Tensor all(placement.type, placement.shape);
    for (std::int64_t at = 0; at < all.size(); ++at) all.set(at, number);
    scatter(placement, all.bytes(), memory);
}

}  // namespace

std::optional<CallResult> lay_out_call(Arena& arena, const kernel::Manifest& manifest,
                                       const Problem& problem, const TensorSet& inputs,
                                       std::uint64_t workspace_bytes, const Variant& variant,
                                       const Asked& asked) {
    add_slots(arena, manifest, problem, inputs, workspace_bytes, asked);
    try {
        arena.lay(variant);
    } catch (const NoAddresses& none) {
        CallResult refused;
        refused.outcome = Outcome::refused;
        refused.reason = none.what();
        return refused;
    }
    const double empty = in_empty_slots(manifest.dialect);
    for (const TensorSlot& slot : arena.slots()) {
        if (slot.access != protocol::Access::read) continue;
        const auto role = static_cast<Role>(slot.role);
        const auto given = [&](Role of) { return inputs.has(of) ? &inputs[of] : nullptr; };
        if (cache_shape_of(problem, role)) {
            if (!std::isnan(empty)) fill_all_slots(slot.placement, empty, arena.at(slot.data));
            scatter_cache(slot.placement, inputs[role], given(Role::block_table),
                          given(Role::lens_kv), arena.at(slot.data));
        } else if ((role == Role::k || role == Role::v) && !std::isnan(empty)) {
            Tensor keys = inputs[role];
            fill_empty_slots(keys, problem, manifest.dialect);
            scatter(slot.placement, keys.bytes(), arena.at(slot.data));
        } else {
            scatter(slot.placement, inputs[role].bytes(), arena.at(slot.data));
        }
    }
    arena.seal();
    return std::nullopt;
}

void collect_outputs(Arena& arena, std::uint64_t returned, CallResult& result) {
    for (const TensorSlot& slot : arena.slots()) {
        if (slot.access != protocol::Access::write || slot.is_workspace()) continue;
        if ((returned >> slot.role & 1) == 0) continue;
        std::int64_t poison_at = -1;
        const auto role = static_cast<Role>(slot.role);
        Tensor output = arena.collect(slot, poison_at);
        if (role == Role::dropout_keep && !holds_answers(output)) continue;
        result.workspace_read = result.workspace_read || arena.made_of_workspace(output);
        result.outputs.put(role, std::move(output));
        if (role == Role::dropout_keep) continue;  // cells that are hidden are free
        if (poison_at >= 0 && !result.outputs_unwritten) {
            result.outputs_unwritten = true;
            result.unwritten_role = role;
            result.unwritten_index = poison_at;
        }
    }
}

}  // namespace attest::worker
