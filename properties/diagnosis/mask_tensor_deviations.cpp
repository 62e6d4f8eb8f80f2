// A mask tensor taken wrongly: inverted, added, ignored, of another head or query.

#include <algorithm>
#include <array>
#include <utility>

#include <numbers>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rotation.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

bool has_boolean(const Specification& s) {
    return s.problem.mask.tensor.kind == MaskKind::boolean;
}
bool has_additive(const Specification& s) {
    return s.problem.mask.tensor.kind == MaskKind::additive;
}

Deviation mask_values_deviation(std::string id, std::string says,
                                std::function<bool(const Specification&)> has,
                                std::function<double(const Specification&, double)> value_of) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [has = std::move(has), value_of = std::move(value_of)](
                             const Specification& s) -> std::optional<Specification> {
                if (!has(s)) return std::nullopt;
                return with_mask_values(s, [&](double v) { return value_of(s, v); });
            }};
}

using MaskIndex = std::array<std::int64_t, 4>;

// Each element of the mask taken from another place of it.
Deviation mask_elsewhere(std::string id, std::string says,
                         std::function<bool(const Specification&)> has,
                         std::function<MaskIndex(const Specification&, MaskIndex)> place) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [has = std::move(has), place = std::move(place)](
                             const Specification& s) -> std::optional<Specification> {
                if (!has_mask(s) || !has(s)) return std::nullopt;
                Specification out = s;
                const Tensor& mask = s.inputs[Role::mask];
                out.inputs.put(Role::mask, remake(mask.type(), mask.shape(),
                                                  [&](std::int64_t a, std::int64_t b,
                                                      std::int64_t c, std::int64_t d) {
                                                      const auto at = place(s, {a, b, c, d});
                                                      return mask.at(at[0], at[1], at[2], at[3]);
                                                  }));
                return out;
            }};
}

// The mask of index 0 of one of its axes, for all.
Deviation mask_of_first(std::size_t axis, const std::string& what) {
    return mask_elsewhere(
        "mask_of_first_" + what, "the mask tensor of the first " + what + " for all",
        [axis](const Specification& s) { return s.inputs[Role::mask].shape()[axis] > 1; },
        [axis](const Specification&, MaskIndex at) {
            at[axis] = 0;
            return at;
        });
}

// The number beside, where there is one: an index that is off by one.
Deviation mask_beside(std::size_t axis, const std::string& what, bool before) {
    const std::string side = before ? "before" : "behind";
    return mask_elsewhere(
        "mask_of_" + what + "_" + side, "the mask tensor of the " + what + " " + side + " it",
        [axis](const Specification& s) { return s.inputs[Role::mask].shape()[axis] > 1; },
        [axis, before](const Specification& s, MaskIndex at) {
            const std::int64_t last = s.inputs[Role::mask].shape()[axis] - 1;
            at[axis] = std::clamp<std::int64_t>(at[axis] + (before ? -1 : 1), 0, last);
            return at;
        });
}

/// Rows that differ, of sequences that stand at one place each, or have a mask of their own each.
bool has_rows_of_positions(const Specification& s) {
    const Shape& shape = s.inputs[Role::mask].shape();
    if (shape[2] == 1 || !s.problem.mask.documents_q.empty()) return false;
    bool differs = false, some = false;
    for (std::int64_t b = 0; b < s.problem.batch; ++b) {
        differs = differs || cached(s, b, 0) != cached(s, 0, 0);
        some = some || cached(s, b, 0) > 0;
    }
    return some && (!differs || shape[0] > 1);
}

/// Right numbers of another place of the tensor.
std::vector<Deviation> other_places() {
    return {
        mask_of_first(0, "sequence"),
        mask_of_first(1, "head"),
        mask_of_first(2, "query"),
        mask_of_first(3, "key"),
        mask_beside(3, "key", true),
        mask_beside(3, "key", false),
        mask_beside(2, "query", true),
        mask_beside(2, "query", false),
        mask_elsewhere(
            "mask_of_key_head", "the mask tensor of the head with the key head's number",
            [](const Specification& s) {
                return group_size(s.problem) > 1 && s.inputs[Role::mask].shape()[1] > 1;
            },
            [](const Specification& s, MaskIndex at) {
                at[1] /= group_size(s.problem);
                return at;
            }),
        mask_elsewhere(
            "mask_anew_each_split", "a mask tensor whose keys are counted anew in each split",
            [](const Specification& s) {
                return s.problem.splits > 1 && s.inputs[Role::mask].shape()[3] > 1;
            },
            [](const Specification& s, MaskIndex at) {
                at[3] %= (s.problem.len_kv + s.problem.splits - 1) / s.problem.splits;
                return at;
            }),
        mask_elsewhere(
            "mask_transposed", "a mask tensor with queries and keys exchanged",
            [](const Specification& s) {
                const Shape& shape = s.inputs[Role::mask].shape();
                return shape[2] == shape[3] && shape[2] > 1;
            },
            [](const Specification&, MaskIndex at) {
                std::swap(at[2], at[3]);
                return at;
            }),
        mask_elsewhere(
            "mask_row_of_position",
            "the mask tensor's row of the query's position, the last where it has no such row",
            has_rows_of_positions,
            [](const Specification& s, MaskIndex at) {
                const std::int64_t before =
                    static_cast<std::int64_t>(std::max(cached(s, at[0], 0), 0.0));
                at[2] = std::min(at[2] + before, s.inputs[Role::mask].shape()[2] - 1);
                return at;
            }),
    };
}

std::vector<Deviation> biases_multiplied() {
    return {
        mask_values_deviation("bias_twice", "an additive mask added twice", has_additive,
                              [](const Specification&, double v) { return 2 * v; }),
        mask_values_deviation("bias_of_base_two",
                              "an additive mask taken for one in base 2: ln(2) of it", has_additive,
                              [](const Specification&, double v) { return v * std::numbers::ln2; }),
        mask_values_deviation(
            "bias_into_base_two", "an additive mask multiplied by log2(e)", has_additive,
            [](const Specification&, double v) { return v * std::numbers::log2e; }),
    };
}

}  // namespace

std::vector<Deviation> mask_tensor_deviations() {
    const double minus_infinity = -infinite;
    std::vector<Deviation> list{
        mask_values_deviation("mask_inverted", "a boolean mask with 0 and 1 exchanged", has_boolean,
                              [minus_infinity](const Specification&, double v) {
                                  return v != 0 ? minus_infinity : 0.0;
                              }),
        mask_values_deviation("mask_boolean_added", "a boolean mask added to the scores as 0 and 1",
                              has_boolean, [](const Specification&, double v) { return v; }),
        mask_values_deviation("mask_additive_as_boolean",
                              "an additive mask read as boolean: visible where not zero",
                              has_additive,
                              [minus_infinity](const Specification&, double v) {
                                  return v != 0 ? 0.0 : minus_infinity;
                              }),
        {.id = "mask_ignored",
         .says = "no mask tensor at all",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             if (!has_mask(s)) return std::nullopt;
             Rules rules = rules_of(s);
             rules.mask_tensor = false;
             return with_rules(s, rules);
         }},
        {.id = "mask_or_causal",
         .says = "the keys that the causal mask or a boolean mask shows, not those that both show",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             if (!s.problem.mask.causal || !has_boolean(s)) return std::nullopt;
             Rules rules = rules_of(s), causal_alone = rules;
             rules.causal = rules.mask_tensor = false;
             rules.also_hidden = [&s, causal_alone](const MaskPlace& p) {
                 return hidden(causal_alone, p) && mask_value(s, p) != 0;
             };
             return with_rules(s, rules);
         }},
        mask_values_deviation("mask_additive_sign_alone",
                              "an additive mask that hides keys, but adds nothing", has_additive,
                              [minus_infinity](const Specification&, double v) {
                                  return v == minus_infinity ? v : 0.0;
                              }),
        mask_values_deviation("bias_negated", "an additive mask subtracted instead of added",
                              has_additive,
                              [minus_infinity](const Specification&, double v) {
                                  return v == minus_infinity ? v : -v;
                              }),
    };
    for (auto part : {other_places(), biases_multiplied()})
        list.insert(list.end(), part.begin(), part.end());
    return list;
}

}  // namespace attest::diagnosis
