// A mask tensor that sequences, heads, queries or keys share, or that has a plane for each, taken
// by another's number.

#include <array>
#include <string>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// A mask with one place on an axis, left out; everywhere or beside a causal mask alone.
Deviation shared_ignored(std::size_t axis, const std::string& what, bool causal) {
    return {.id = "mask_shared_" + what + "_ignored" + (causal ? "_causal" : ""),
            .says = "no mask tensor where it is one for every " + what +
                    (causal ? " and there is a causal mask" : ""),
            .respecify = [axis, causal](const Specification& s) -> std::optional<Specification> {
                if (!has_mask(s) || s.inputs[Role::mask].shape()[axis] > 1 ||
                    (causal && !s.problem.mask.causal))
                    return std::nullopt;
                Rules rules = rules_of(s);
                rules.mask_tensor = false;
                return with_rules(s, rules);
            }};
}

/// The mask of the first of one axis for all, where it has one place on another: as if that were
/// shared, too.
Deviation first_where_shared(std::size_t axis, const std::string& what, std::size_t shared,
                             const std::string& of_every) {
    return {.id = "mask_of_first_" + what + "_of_shared_" + of_every,
            .says = "the mask tensor of the first " + what +
                    " for all, where it is one for every " + of_every,
            .respecify = [axis, shared](const Specification& s) -> std::optional<Specification> {
                if (!has_mask(s)) return std::nullopt;
                const Tensor& mask = s.inputs[Role::mask];
                if (mask.shape()[axis] == 1 || mask.shape()[shared] > 1) return std::nullopt;
                Specification out = s;
                out.inputs.put(Role::mask, remake(mask.type(), mask.shape(),
                                                  [&](std::int64_t b, std::int64_t h,
                                                      std::int64_t i, std::int64_t j) {
                                                      std::array at{b, h, i, j};
                                                      at[axis] = 0;
                                                      return mask.at(at[0], at[1], at[2], at[3]);
                                                  }));
                return out;
            }};
}

/// One mask for every sequence, a head of which is taken by the sequence's number.
std::optional<Specification> head_of_sequence(const Specification& s) {
    if (!has_mask(s)) return std::nullopt;
    const Tensor& mask = s.inputs[Role::mask];
    Shape shape = mask.shape();
    const std::int64_t heads = shape[1];
    if (shape[0] > 1 || heads == 1) return std::nullopt;
    shape[0] = s.problem.batch;
    Specification out = s;
    out.inputs.put(Role::mask, remake(mask.type(), shape,
                                      [&](std::int64_t b, std::int64_t, std::int64_t i,
                                          std::int64_t j) { return mask.at(0, b % heads, i, j); }));
    out.problem.mask.tensor.shared_batch = false;
    return out;
}

/// The planes of a mask of every sequence and head, head by head; where it has no plane of its own
/// for each, those it would have if it were written out, or they are left alone.
Deviation heads_first(bool written_out) {
    return {.id = written_out ? "mask_of_heads_first_written_out" : "mask_of_heads_first",
            .says = std::string("a mask tensor read as [heads, sequences] where it is [sequences, "
                                "heads]") +
                    (written_out ? ", also where heads or sequences share it" : ""),
            .respecify = [written_out](const Specification& s) -> std::optional<Specification> {
                const std::int64_t sequences = s.problem.batch, heads = s.problem.heads_q;
                if (!has_mask(s) || sequences == 1 || heads == 1) return std::nullopt;
                const Tensor& mask = s.inputs[Role::mask];
                const Shape& own = mask.shape();
                const bool whole = own[0] > 1 && own[1] > 1;
                if ((own[0] == 1 && own[1] == 1) || (!whole && !written_out)) return std::nullopt;
                Specification out = s;
                out.inputs.put(
                    Role::mask,
                    remake(mask.type(), {sequences, heads, own[2], own[3]},
                           [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                               const std::int64_t plane = h * sequences + b;
                               return mask.at(own[0] > 1 ? plane / heads : 0,
                                              own[1] > 1 ? plane % heads : 0, i, j);
                           }));
                out.problem.mask.tensor.shared_batch = out.problem.mask.tensor.shared_heads = false;
                return out;
            }};
}

/// Row [b, h] of all sequences and heads takes the plane of its number, and from the first again
/// behind the last: right where either all have their own, or one is shared by all.
std::optional<Specification> plane_modulo(const Specification& s) {
    if (!has_mask(s)) return std::nullopt;
    const Tensor& mask = s.inputs[Role::mask];
    const Shape& own = mask.shape();
    const std::int64_t sequences = s.problem.batch, heads = s.problem.heads_q;
    if (own[0] == 1 || own[1] > 1 || heads == 1) return std::nullopt;
    Specification out = s;
    out.inputs.put(Role::mask,
                   remake(mask.type(), {sequences, heads, own[2], own[3]},
                          [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                              return mask.at((b * heads + h) % sequences, 0, i, j);
                          }));
    out.problem.mask.tensor.shared_batch = out.problem.mask.tensor.shared_heads = false;
    return out;
}

// A document's first row and key take those of the tensor.
std::optional<Specification> mask_in_documents(const Specification& s) {
    if (!has_mask(s) || s.problem.mask.documents_q.empty()) return std::nullopt;
    const Tensor& mask = s.inputs[Role::mask];
    const auto place = [&](std::int64_t b, std::int64_t i, std::int64_t j) {
        const SegmentExtent own = segment_of(s.problem, b, i);
        const bool inside = j >= own.keys.begin && j < own.keys.end;
        return std::pair(i - own.queries.begin, inside ? j - own.keys.begin : j);
    };
    const Shape shape{mask.shape()[0], mask.shape()[1], s.problem.len_q, s.problem.len_kv};
    Specification out = s;
    out.inputs.put(Role::mask,
                   remake(mask.type(), shape,
                          [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                              const auto [row, key] = place(b, i, j);
                              return mask.broadcast_at(b, h, row, key);
                          }));
    out.problem.mask.tensor.shared_queries = out.problem.mask.tensor.shared_keys = false;
    return out;
}

}  // namespace

std::vector<Deviation> shared_masks() {
    std::vector<Deviation> list{{.id = "mask_in_documents",
                                 .says = "the mask tensor's row and key of the place in the "
                                         "document, not on the axis",
                                 .respecify = mask_in_documents},
                                {.id = "mask_of_head_by_sequence",
                                 .says = "the mask tensor of head b mod Hq for all heads of "
                                         "sequence b, where it is one for every sequence",
                                 .respecify = head_of_sequence},
                                {.id = "mask_plane_modulo",
                                 .says = "the mask tensor's plane (b Hq + h) mod B for head h of "
                                         "sequence b, where heads share them",
                                 .respecify = plane_modulo},
                                heads_first(false),
                                as_form_of("mask_of_heads_first", heads_first(true))};
    constexpr const char* axes[] = {"sequence", "head", "query", "key"};
    for (std::size_t axis = 0; axis < 4; ++axis)
        for (const bool causal : {false, true})
            list.push_back(shared_ignored(axis, axes[axis], causal));
    for (std::size_t axis = 0; axis < 4; ++axis)
        for (std::size_t shared = 0; shared < 4; ++shared)
            if (axis != shared)
                list.push_back(first_where_shared(axis, axes[axis], shared, axes[shared]));
    for (Deviation& d : list) d.tells = law::Tells::visibility;
    return list;
}

}  // namespace attest::diagnosis
