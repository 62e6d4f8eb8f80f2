#include "properties/law/paired_keys.hpp"

#include <utility>

#include "properties/law/compare.hpp"
#include "properties/law/paired_runs.hpp"
#include "properties/law/reading.hpp"

namespace attest::law {

namespace {

/// Columns of a mask tensor: those of the `old` keys, then `value` for new ones.
Tensor widened(const Tensor& mask, std::int64_t old, std::int64_t keys, double value) {
    Shape shape = mask.shape();
    const std::int64_t columns = shape[3];
    shape[3] = keys;
    Tensor wide(mask.type(), shape);
    for (std::int64_t at = 0; at < wide.size(); ++at) {
        const std::int64_t row = at / keys, j = at % keys;
        wide.set(at, j < old ? mask.get(row * columns + (columns == 1 ? 0 : j)) : value);
    }
    return wide;
}

}  // namespace

PairedCase with_keys(const Problem& problem, const TensorSet& inputs,
                     const std::vector<std::int64_t>& from,
                     const std::vector<std::int64_t>& lens_kv) {
    Problem other = problem;
    other.len_kv = static_cast<std::int64_t>(from.size());
    other.mask.lens_kv = lens_kv;
    TensorSet chosen = inputs;
    for (const Role role : {Role::k, Role::v}) chosen.put(role, gather(inputs[role], 2, from));
    if (inputs.has(Role::mask))
        chosen.put(Role::mask, gather_mask_keys(problem.mask.tensor, inputs[Role::mask], from));
    return adopt(canonical(other), chosen);
}

PairedCase with_keys_twice(const Problem& problem, const TensorSet& inputs, bool side_by_side) {
    std::vector<std::int64_t> from, lens = problem.mask.lens_kv;
    for (std::int64_t j = 0; j < 2 * problem.len_kv; ++j)
        from.push_back(side_by_side || !lens.empty() ? j / 2 : j % problem.len_kv);
    for (std::int64_t& len : lens) len *= 2;
    return with_keys(problem, inputs, from, lens);
}

std::optional<PairedCase> with_neutral_keys(const Given& given, const Problem& problem,
                                            const TensorSet& inputs, Neutral by, std::int64_t count,
                                            std::uint64_t stream) {
    Problem wide = problem;
    wide.len_kv += count;
    MaskTensor& tensor = wide.mask.tensor;
    if (by == Neutral::length) {
        if (wide.mask.lens_kv.empty())
            wide.mask.lens_kv.assign(static_cast<std::size_t>(problem.batch), problem.len_kv);
    } else {
        // Without lengths the diagonal of a causal mask or a window would move with the keys; with
        // them the new keys would be hidden already.
        const MaskKind kind = by == Neutral::boolean_mask ? MaskKind::boolean : MaskKind::additive;
        const bool diagonal = problem.mask.causal || problem.mask.window.limited();
        if (diagonal || !problem.mask.lens_kv.empty()) return std::nullopt;
        if (tensor.kind == MaskKind::none) tensor = {kind, true, true, true};
        if (tensor.kind != kind) return std::nullopt;
    }
    tensor.shared_keys = false;  // the new keys are not as the others
    wide = canonical(wide);
    if (!given.supports(wide)) return std::nullopt;

    TensorSet from = inputs;
    for (const Role role : {Role::k, Role::v}) {
        std::uint64_t index = 0;
        const Tensor& old = inputs[role];
        from.put(role,
                 tensor_of(wide, role,
                           [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
                               if (t < problem.len_kv) return old.at(b, h, t, c);
                               return given.random_normal(stream + (role == Role::k ? 0 : 1),
                                                          index++);
                           }));
    }
    const bool boolean = tensor.kind == MaskKind::boolean;
    const double hidden = boolean ? 0 : -infinite;
    const double value = by == Neutral::length ? (boolean ? 1 : 0) : hidden;
    if (tensor.kind != MaskKind::none) {
        const bool had_one = inputs.has(Role::mask);
        Tensor mask = had_one ? inputs[Role::mask]
                              : Tensor(type_of(wide, Role::mask), {1, 1, 1, problem.len_kv});
        if (!had_one && boolean)
            for (std::int64_t j = 0; j < problem.len_kv; ++j) mask.set(j, 1);
        from.put(Role::mask, widened(mask, problem.len_kv, wide.len_kv, value));
    }
    return adopt(wide, from);
}

}  // namespace attest::law
