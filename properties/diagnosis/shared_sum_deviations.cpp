// Deviations of the sums that several rows share: the gradients of a bias, of sinks and of slopes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/law/compare.hpp"

namespace attest::diagnosis {

namespace {

BackwardDeviation mask_term(std::string id, std::string says,
                            std::function<Near(const ModelPair&, Near)> term) {
    return exchanged_step(
        std::move(id), std::move(says),
        [term = std::move(term)](const BackwardCall&, ModelSteps& s) { s.mask_term = term; });
}

BackwardDeviation sink_term(std::string id, std::string says,
                            std::function<Near(const ModelRow&, Near)> term) {
    return exchanged_step(
        std::move(id), std::move(says),
        [term = std::move(term)](const BackwardCall&, ModelSteps& s) { s.sink_term = term; });
}

BackwardDeviation slope_term(std::string id, std::string says,
                             std::function<Near(const ModelPair&, Near)> term) {
    return exchanged_step(
        std::move(id), std::move(says),
        [term = std::move(term)](const BackwardCall&, ModelSteps& s) { s.slope_term = term; });
}

/// The gradient of the pair's bias as if the soft cap stood on the other side of it.
Near of_bias_other_place(const ModelPair& pair) {
    const bool late = pair.row.call.call.dialect.softcap == SoftcapPlace::after_bias;
    return late ? pair.ds : rounded(pair.ds * plain_slope(pair), 2 * pair.row.call.model.ua, 0);
}

void add_joined_sinks(std::vector<BackwardDeviation>& list) {
    struct Form {
        Joining how;
        const char *id, *says;
    };
    for (const Form f : {Form{Joining::last, "last", "that of the last"},
                         Form{Joining::first, "first", "that of the first"},
                         Form{Joining::mean, "mean", "the mean"}}) {
        list.push_back(exchanged_step(
            fmt::format("sinks_{}", f.id),
            fmt::format("{} of the rows, where a sink's gradient is their sum", f.says),
            [how = f.how](const BackwardCall&, ModelSteps& s) { s.sinks = how; }));
    }
    list.push_back(exchanged_step(
        "bias_slope", "a bias gradient with the cap's derivative in the wrong place",
        [](const BackwardCall&, ModelSteps& s) {
            s.mask_term = [](const ModelPair& pair, Near) { return of_bias_other_place(pair); };
            s.slope_term = [](const ModelPair& pair, Near) {
                return plain_slope_term(pair, of_bias_other_place(pair));
            };
        }));
    list.push_back(mask_term("mask_is_weight", "the weights where a bias gradient is meant",
                             [](const ModelPair& pair, Near) { return pair.p; }));
    list.push_back(mask_term("mask_is_dp", "dP where a bias gradient is meant",
                             [](const ModelPair& pair, Near) { return pair.dp; }));
    list.push_back(mask_term(
        "mask_scaled", "a bias gradient multiplied by the softmax scale",
        [](const ModelPair& pair, Near term) { return pair.row.call.call.scale * term; }));
    list.push_back(sink_term("sink_unweighted", "a sink's gradient without its weight",
                             [](const ModelRow& row, Near) { return -row.delta; }));
    list.push_back(sink_term("sink_is_weight", "a sink's gradient without delta",
                             [](const ModelRow&, Near weight) { return -weight; }));
    list.push_back(sink_term("sink_negated", "a sink's gradient of the wrong sign",
                             [](const ModelRow& row, Near weight) { return weight * row.delta; }));
    for (const std::int64_t rows : {256, 128, 64, 32, 16})
        list.push_back(
            sink_term(fmt::format("sink_first_{}", rows),
                      fmt::format("a sink's gradient of the first {} queries alone", rows),
                      [rows](const ModelRow& row, Near weight) {
                          return row.i < rows ? -(weight * row.delta) : Near{};
                      }));
    list.push_back(sink_term("sink_none", "no gradient for the sink",
                             [](const ModelRow&, Near) { return Near{}; }));
}

/// What stands where the distance of query and key is meant.
void add_other_distances(std::vector<BackwardDeviation>& list) {
    const auto distance = [&list](const char* id, const char* says, auto of) {
        list.push_back(slope_term(
            id, says, [of](const ModelPair& pair, Near of_bias) { return -(of(pair) * of_bias); }));
    };
    distance("slopes_squared", "a slope's gradient with the distance squared",
             [](const ModelPair& pair) { return pair.facts.ahead * pair.facts.ahead; });
    distance("slopes_of_key", "a slope's gradient with the key's number for the distance",
             [](const ModelPair& pair) { return static_cast<double>(pair.j); });
    distance("slopes_of_query", "a slope's gradient with the query's number for the distance",
             [](const ModelPair& pair) { return static_cast<double>(pair.row.i); });
    distance("slopes_farther", "a slope's gradient with a distance one too large",
             [](const ModelPair& pair) { return std::abs(pair.facts.ahead) + 1; });
}

/// A slope of ALiBi: one number a head, of every sequence, query and key.
void add_slope_gradients(std::vector<BackwardDeviation>& list) {
    list.push_back(slope_term(
        "slopes_negated", "a slope's gradient of the wrong sign",
        [](const ModelPair& pair, Near of_bias) { return -plain_slope_term(pair, of_bias); }));
    list.push_back(slope_term(
        "slopes_signed", "a slope's gradient of j - i, not of its size",
        [](const ModelPair& pair, Near of_bias) { return -pair.facts.ahead * of_bias; }));
    list.push_back(slope_term("slopes_undistanced", "a slope's gradient without the distance",
                              [](const ModelPair&, Near of_bias) { return -of_bias; }));
    list.push_back(slope_term("slopes_scaled", "a slope's gradient multiplied by the softmax scale",
                              [](const ModelPair& pair, Near of_bias) {
                                  return pair.row.call.call.scale * plain_slope_term(pair, of_bias);
                              }));
    list.push_back(
        slope_term("slopes_of_weights", "a slope's gradient of P where dS is meant",
                   [](const ModelPair& pair, Near) { return plain_slope_term(pair, pair.p); }));
    list.push_back(
        slope_term("slopes_of_dp", "a slope's gradient of dP where dS is meant",
                   [](const ModelPair& pair, Near) { return plain_slope_term(pair, pair.dp); }));
    const auto of_some = [&list](const char* id, const char* says, auto counts) {
        list.push_back(slope_term(id, says, [counts](const ModelPair& pair, Near of_bias) {
            return counts(pair.row) ? plain_slope_term(pair, of_bias) : Near{};
        }));
    };
    of_some("slopes_last_sequence", "a slope's gradient of the last sequence alone",
            [](const ModelRow& row) { return row.b == row.call.problem().batch - 1; });
    of_some("slopes_last_sequence", "a slope's gradient of the last sequence alone",
            of_last_packed);
    of_some("slopes_first_sequence", "a slope's gradient of the first sequence alone",
            [](const ModelRow& row) { return row.b == 0; });
    of_some("slopes_last_query", "a slope's gradient of the last query alone",
            [](const ModelRow& row) { return row.i == row.call.problem().len_q - 1; });
    add_other_distances(list);
}

/// What belongs apart along one axis of the mask, added up at its first.
void add_shared_axes(std::vector<BackwardDeviation>& list) {
    constexpr const char* names[] = {"sequences", "heads", "queries", "keys"};
    for (std::size_t axis = 0; axis < 4; ++axis)
        list.push_back(exchanged_step(
            fmt::format("mask_{}_joined", names[axis]),
            fmt::format("a bias gradient summed over {}, which have masks of their own, at the "
                        "first of them",
                        names[axis]),
            [axis](const BackwardCall&, ModelSteps& s) {
                s.afterwards = [axis](const BackwardCall& call, Predicted& out) {
                    std::vector<Near>& all = out[Role::d_mask];
                    const Shape shape = call.call.mask_shape;
                    for (std::size_t at = 0; at < all.size(); ++at) {
                        Shape place = law::index_of(shape, static_cast<std::int64_t>(at));
                        if (place[axis] == 0) continue;
                        place[axis] = 0;
                        Near& first = all[static_cast<std::size_t>(
                            ((place[0] * shape[1] + place[1]) * shape[2] + place[2]) * shape[3] +
                            place[3])];
                        first = first + all[at];
                        all[at] = {};
                    }
                };
            }));
}

/// Of an axis that a mask is shared along, one sequence, head, query or key alone; all else is
/// added up.
void add_partial_masks(std::vector<BackwardDeviation>& list) {
    struct SharedAxis {
        const char *id, *says;
        std::size_t axis;
        std::int64_t (*at)(const ModelPair&);
        std::int64_t (*length)(const Problem&);
    };
    const SharedAxis axes[] = {
        {"sequence", "sequence", 0, [](const ModelPair& pair) { return pair.row.b; },
         [](const Problem& p) { return p.batch; }},
        {"head", "head", 1, [](const ModelPair& pair) { return pair.row.h; },
         [](const Problem& p) { return p.heads_q; }},
        {"query", "query", 2, [](const ModelPair& pair) { return pair.row.i; },
         [](const Problem& p) { return p.len_q; }},
        {"key", "key", 3, [](const ModelPair& pair) { return pair.j; },
         [](const Problem& p) { return p.len_kv; }}};
    for (const SharedAxis& a : axes)
        for (const bool last : {false, true})
            list.push_back(mask_term(
                fmt::format("mask_{}_{}", last ? "last" : "first", a.id),
                fmt::format("a bias gradient of the {} {} alone, where one mask is for all",
                            last ? "last" : "first", a.says),
                [a, last](const ModelPair& pair, Near term) {
                    if (pair.row.call.call.mask_shape[a.axis] != 1) return term;
                    const std::int64_t n = a.length(pair.row.call.problem());
                    return a.at(pair) == (last ? n - 1 : 0) ? term : Near{};
                }));
    list.push_back(
        mask_term("mask_key_heads",
                  "a bias gradient of as many heads as there are key heads, where one mask "
                  "is for all",
                  [](const ModelPair& pair, Near term) {
                      const bool left_out = pair.row.call.call.mask_shape[1] == 1 &&
                                            pair.row.h >= pair.row.call.problem().heads_kv;
                      return left_out ? Near{} : term;
                  }));
    list.push_back(mask_term(
        "mask_first_of_group",
        "a bias gradient of the first query head of each group alone, where one mask is "
        "for all",
        [](const ModelPair& pair, Near term) {
            const bool left_out =
                pair.row.call.call.mask_shape[1] == 1 && pair.row.h % pair.row.call.call.group != 0;
            return left_out ? Near{} : term;
        }));
    list.push_back(exchanged_step(
        "mask_transposed", "a bias gradient with queries and keys exchanged",
        [](const BackwardCall& call, ModelSteps& s) {
            const Shape shape = call.call.mask_shape;
            if (shape[2] != shape[3]) return;
            s.afterwards = [shape](const BackwardCall&, Predicted& out) {
                const std::vector<Near> old = out[Role::d_mask];
                for (std::size_t at = 0; at < old.size(); ++at) {
                    const Shape n = law::index_of(shape, static_cast<std::int64_t>(at));
                    out[Role::d_mask][static_cast<std::size_t>(
                        ((n[0] * shape[1] + n[1]) * shape[2] + n[3]) * shape[3] + n[2])] = old[at];
                }
            };
        }));
}

void add_sinks(std::vector<BackwardDeviation>& list) {
    // w and 1 - w are each off by what w is.
    list.push_back(sink_term("sinks_diagonal", "a sink's gradient with P (1 - P) for its weight",
                             [](const ModelRow& row, Near weight) {
                                 return -(weight * (Near{1, 0} - weight) * row.delta);
                             }));
    const auto of_some = [&list](const char* id, const char* says, auto counts) {
        list.push_back(sink_term(id, says, [counts](const ModelRow& row, Near weight) {
            return counts(row) ? -(weight * row.delta) : Near{};
        }));
    };
    of_some("sinks_last_sequence", "a sink's gradient of the last sequence alone",
            [](const ModelRow& row) { return row.b == row.call.problem().batch - 1; });
    of_some("sinks_last_sequence", "a sink's gradient of the last sequence alone", of_last_packed);
    of_some("sinks_rows_with_keys", "a sink's gradient without the rows that see no key",
            [](const ModelRow& row) { return row.call.sees_any(row.b, row.h, row.i); });
    of_some("sinks_first_sequence", "a sink's gradient of the first sequence alone",
            [](const ModelRow& row) { return row.b == 0; });
    struct SharedHead {
        const char *id, *says;
        std::int64_t (*of)(const BackwardCall&, std::int64_t h);
    };
    for (const SharedHead h :
         {SharedHead{"shared_key_head", "gradients of query heads added at their key head's number",
                     [](const BackwardCall&call, std::int64_t n) { return n / call.call.group; }},
          SharedHead{"shared_first_head",
                     "the gradients of sinks and slopes of all heads added at the first",
                     [](const BackwardCall&, std::int64_t) { return std::int64_t{0}; }}})
        list.push_back(exchanged_step(
            h.id, h.says, [of = h.of](const BackwardCall&, ModelSteps& s) { s.shared_head = of; }));
}

}  // namespace

std::vector<BackwardDeviation> shared_sum_deviations() {
    std::vector<BackwardDeviation> list = joined_bias_deviations();
    add_joined_sinks(list);
    add_slope_gradients(list);
    add_shared_axes(list);
    add_partial_masks(list);
    add_sinks(list);
    return list;
}

}  // namespace attest::diagnosis
