// Deviations of RoPE in backward: turned back not at all, the other way, from another position or
// in other pairs; sums of what was not turned.

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/rotation.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

/// Turned back as the RoPE of another problem would be; nothing is said where that is this one's.
BackwardDeviation turned_as(std::string id, std::string says, void (*change)(Rope&, std::int64_t)) {
    return exchanged_step(std::move(id), std::move(says),
                          [change](const BackwardCall&, ModelSteps& s) {
                              s.turns_as = [change](Problem& p) { change(p.rope, p.dim_qk); };
                          });
}

void add_other_turns(std::vector<BackwardDeviation>& list) {
    list.push_back(turned_as("rope_back_without_offset",
                             "gradients turned back from position 0, not from the offset",
                             [](Rope& rope, std::int64_t) { rope.offset = 0; }));
    list.push_back(turned_as("rope_back_one_more", "gradients turned back by one position too many",
                             [](Rope& rope, std::int64_t) { ++rope.offset; }));
    list.push_back(turned_as("rope_back_one_less", "gradients turned back by one position too few",
                             [](Rope& rope, std::int64_t) { --rope.offset; }));
    list.push_back(turned_as(
        "rope_back_other_pairs", "gradients turned back in other pairs of channels than they were",
        [](Rope& rope, std::int64_t) {
            rope.style = rope.style == RopeStyle::half ? RopeStyle::interleaved : RopeStyle::half;
        }));
    list.push_back(turned_as("rope_back_default_base", "gradients turned back with a base of 10000",
                             [](Rope& rope, std::int64_t) { rope.base = 10000; }));
    list.push_back(turned_as("rope_back_all_channels",
                             "all channels turned back, also those that RoPE leaves as they are",
                             [](Rope& rope, std::int64_t) { rope.dims = 0; }));
    list.push_back(turned_as("rope_back_base_of_all",
                             "gradients turned back with frequencies base^(-2c/D), not "
                             "base^(-2c/dims)",
                             [](Rope& rope, std::int64_t dim) {
                                 if (rope.dims == 0) return;
                                 rope.base = std::pow(rope.base, static_cast<double>(rope.dims) /
                                                                     static_cast<double>(dim));
                             }));
    list.push_back(turned_as("rope_back_half_the_channels", "half of RoPE's channels turned back",
                             [](Rope& rope, std::int64_t dim) {
                                 const std::int64_t dims = rope.dims == 0 ? dim : rope.dims;
                                 rope.dims = std::max<std::int64_t>(dims / 4 * 2, 2);
                             }));
}

/// RoPE in halves of a part of the channels.
BackwardDeviation turned_across() {
    return exchanged_step("rope_back_across",
                          "channel c turned back with channel c + D/2, not with c + dims/2",
                          [](const BackwardCall& call, ModelSteps& s) {
                              s.turns_across = call.problem().rope.style == RopeStyle::half;
                          });
}

/// Queries and keys turned so, as a forward that takes those pairs turns them.
BackwardDeviation both_turned_across() {
    return {.id = "rope_across",
            .says =
                "scores of channel c turned with channel c + D/2, not with c + dims/2, and "
                "gradients turned back so",
            .change =
                [](const BackwardCall&, ModelSteps& s) {
                    s.afterwards = [](const BackwardCall& call, Predicted& out) {
                        const auto from = channels_half_of_all_apart(call.problem());
                        for (const Role role : {Role::d_q, Role::d_k}) {
                            const std::vector<Near> turned = out[role];
                            for (std::size_t n = 0; n < turned.size(); ++n) {
                                const std::size_t c = n % from.size();
                                out[role][n - c + static_cast<std::size_t>(from[c])] = turned[n];
                            }
                        }
                    };
                },
            // Numbers that are all alike are in another order, too.
            .respecify = [](const Specification& s) -> std::optional<Specification> {
                if (channels_half_of_all_apart(s.problem).empty()) return std::nullopt;
                Specification out = s;
                pairs_half_of_all_apart(out);
                return out;
            },
            .reorders = true,
            .in_forward = "rope_half_of_all"};
}

BackwardDeviation turned_by_axis() {
    return exchanged_step("rope_back_by_axis",
                          "gradients turned back by the place on the axis, not in the document",
                          [](const BackwardCall&, ModelSteps& s) {
                              s.turns_as = [](Problem& p) {
                                  p.mask.documents_q.clear();
                                  p.mask.documents_kv.clear();
                              };
                          });
}

}  // namespace

std::vector<BackwardDeviation> turn_deviations() {
    std::vector<BackwardDeviation> list{
        exchanged_step("rope_not_turned_back", "gradients that RoPE has not turned back",
                       [](const BackwardCall&, ModelSteps& s) { s.turns_back = 0; }),
        exchanged_step("rope_turned_again", "gradients that RoPE has turned on instead of back",
                       [](const BackwardCall&, ModelSteps& s) { s.turns_back = -1; })};
    add_other_turns(list);
    list.push_back(turned_across());
    list.push_back(both_turned_across());
    list.push_back(turned_by_axis());
    for (const Precision format : {Precision::bf16, Precision::f16})
        list.push_back(exchanged_step(
            "rope_back_table_" + std::string(name(format)),
            "gradients turned back by cosines and sines rounded to " + words_of(format),
            [format](const BackwardCall&, ModelSteps& s) { s.turn_table = format; }));
    for (const int turns : {1, 0})
        list.push_back(exchanged_step(
            turns != 0 ? "rope_products_plain" : "rope_products_plain_not_turned_back",
            turns != 0 ? "dQ and dK as sums of keys and queries that RoPE has not turned"
                       : "dQ and dK as sums of keys and queries that RoPE has not turned, and not "
                         "turned back",
            [turns](const BackwardCall&, ModelSteps& s) {
                s.plain_queries = s.plain_keys = true;
                s.turns_back = turns;
            }));
    return list;
}

}  // namespace attest::diagnosis
