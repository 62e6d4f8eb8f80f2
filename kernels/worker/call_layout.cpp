#include "kernels/worker/call_layout.hpp"

#include "reference/problem/errors.hpp"

namespace attest::worker {
namespace {

/// The outputs of a forward call, in the order of roles.
constexpr Role output_roles[] = {Role::o, Role::lse};

void add_slots(Arena& arena, const Problem& problem, const TensorSet& inputs,
               std::uint64_t workspace_bytes) {
    arena.clear();
    for (std::size_t r = 0; r < role_count; ++r) {
        const auto role = static_cast<Role>(r);
        if (!inputs.has(role)) continue;
        const Tensor& tensor = inputs[role];
        require(tensor.type() == type_of(problem, role),
                "an input has the element type that its problem says");
        const Shape shape = pool_shape_of(problem, role).value_or(tensor.shape());
        arena.add(role, protocol::Access::read,
                  place(role, tensor.type(), shape, layout_of(problem, role)));
    }
    for (Role role : output_roles) {
        if (const std::optional<Shape> shape = shape_of(problem, role)) {
            arena.add(role, protocol::Access::write,
                      place(role, type_of(problem, role), *shape, layout_of(problem, role)));
        }
    }
    if (workspace_bytes != 0) arena.add_workspace(workspace_bytes);
}

}  // namespace

void lay_out_call(Arena& arena, const Problem& problem, const TensorSet& inputs,
                  std::uint64_t workspace_bytes, const Variant& variant) {
    add_slots(arena, problem, inputs, workspace_bytes);
    arena.lay(variant);
    for (const TensorSlot& slot : arena.slots()) {
        if (slot.access != protocol::Access::read) continue;
        const auto role = static_cast<Role>(slot.role);
        if (pool_shape_of(problem, role)) {
            const Tensor* lens = inputs.has(Role::lens_kv) ? &inputs[Role::lens_kv] : nullptr;
            scatter_pages(slot.placement, inputs[role], inputs[Role::block_table], lens,
                          arena.at(slot.data));
        } else {
            scatter(slot.placement, inputs[role].bytes(), arena.at(slot.data));
        }
    }
    arena.seal();
}

}  // namespace attest::worker
