// Deviations of the sums: heads of a group, shared axes of a bias, rows of a sink, what is dropped.

#include <fmt/format.h>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/law/compare.hpp"
#include "reference/oracle/visibility.hpp"

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

BackwardDeviation key_head(std::string id, std::string says,
                           std::function<std::int64_t(const BackwardCall&, std::int64_t)> of) {
    return exchanged_step(std::move(id), std::move(says),
                          [of = std::move(of)](const BackwardCall& call, ModelSteps& s) {
                              for (std::int64_t h = 0; h < call.problem().heads_q; ++h)
                                  if (of(call, h) < 0 || of(call, h) >= call.problem().heads_kv)
                                      return;
                              s.key_head = of;
                          });
}

BackwardDeviation slope_term(std::string id, std::string says,
                             std::function<Near(const ModelPair&, Near)> term) {
    return exchanged_step(
        std::move(id), std::move(says),
        [term = std::move(term)](const BackwardCall&, ModelSteps& s) { s.slope_term = term; });
}

void add_heads(std::vector<BackwardDeviation>& list) {
    const auto joined = [](Joining how) {
        return [how](const BackwardCall&, ModelSteps& s) { s.groups = how; };
    };
    list.push_back(exchanged_step("group_last", "dK and dV of the last query head of a group alone",
                                  joined(Joining::last)));
    list.push_back(exchanged_step("group_first",
                                  "dK and dV of the first query head of a group alone",
                                  joined(Joining::first)));
    list.push_back(exchanged_step("group_mean",
                                  "the mean over a group's heads where their sum is meant",
                                  joined(Joining::mean)));
    list.push_back(key_head(
        "key_head_modulo", "dK and dV added to key head h mod Hkv",
        [](const BackwardCall& call, std::int64_t h) { return h % call.problem().heads_kv; }));
    list.push_back(key_head("key_head_first", "dK and dV of every head added to key head 0",
                            [](const BackwardCall&, std::int64_t) { return std::int64_t{0}; }));
}

void add_joined(std::vector<BackwardDeviation>& list) {
    struct Form {
        Joining how;
        const char *id, *says;
    };
    for (const Form f : {Form{Joining::last, "last", "that of the last"},
                         Form{Joining::first, "first", "that of the first"},
                         Form{Joining::mean, "mean", "the mean"}}) {
        list.push_back(
            exchanged_step(fmt::format("mask_{}", f.id),
                           fmt::format("{} of what a bias is added to, where its gradient is "
                                       "the sum",
                                       f.says),
                           [how = f.how](const BackwardCall&, ModelSteps& s) { s.mask = how; }));
        list.push_back(exchanged_step(
            fmt::format("sinks_{}", f.id),
            fmt::format("{} of the rows, where a sink's gradient is their sum", f.says),
            [how = f.how](const BackwardCall&, ModelSteps& s) { s.sinks = how; }));
    }
    list.push_back(mask_term(
        "mask_slope",
        "a bias gradient with the cap's derivative in the "
        "wrong place",
        [](const ModelPair& pair, Near) {
            const bool late = pair.row.call.call.dialect.softcap == SoftcapPlace::after_bias;
            return late ? pair.ds
                        : rounded(pair.ds * plain_slope(pair), 2 * pair.row.call.model.ua, 0);
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
    list.push_back(sink_term("sink_none", "no gradient for the sink",
                             [](const ModelRow&, Near) { return Near{}; }));
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
    of_some("slopes_first_sequence", "a slope's gradient of the first sequence alone",
            [](const ModelRow& row) { return row.b == 0; });
    of_some("slopes_last_query", "a slope's gradient of the last query alone",
            [](const ModelRow& row) { return row.i == row.call.problem().len_q - 1; });
}

/// What belongs apart along one axis of the mask, added up at its first.
void add_shared_axes(std::vector<BackwardDeviation>& list) {
    constexpr const char* names[] = {"sequences", "heads", "queries"};
    for (std::size_t axis = 0; axis < 3; ++axis)
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

/// Keys (or queries) for which `kept` is false add to nothing.
using Adds = std::function<bool(std::int64_t at, std::int64_t length)>;

void add_dropped(std::vector<BackwardDeviation>& list, const std::string& id,
                 const std::string& which, const Adds& kept) {
    const auto length = [](const std::vector<std::int64_t>& lens, std::int64_t b,
                           std::int64_t axis) {
        return lens.empty() ? axis : lens[static_cast<std::size_t>(b)];
    };
    list.push_back(exchanged_step("keys_" + id, "gradients without " + which + " keys",
                                  [=](const BackwardCall&, ModelSteps& s) {
                                      s.sees = [=](const ModelRow& row, std::int64_t j, bool is) {
                                          const Problem& p = row.call.problem();
                                          return is &&
                                                 kept(j, length(p.mask.lens_kv, row.b, p.len_kv));
                                      };
                                  }));
    list.push_back(exchanged_step("queries_" + id, "gradients without " + which + " queries",
                                  [=](const BackwardCall&, ModelSteps& s) {
                                      s.sees = [=](const ModelRow& row, std::int64_t, bool is) {
                                          const Problem& p = row.call.problem();
                                          return is &&
                                                 kept(row.i, length(p.mask.lens_q, row.b, p.len_q));
                                      };
                                  }));
}

}  // namespace

std::vector<BackwardDeviation> sum_deviations() {
    std::vector<BackwardDeviation> list;
    add_heads(list);
    add_joined(list);
    add_slope_gradients(list);
    add_shared_axes(list);
    add_dropped(list, "last_one", "the last of its",
                [](std::int64_t at, std::int64_t n) { return at != n - 1; });
    add_dropped(list, "first_one", "the first of its",
                [](std::int64_t at, std::int64_t) { return at != 0; });
    for (const std::int64_t tile : {2, 4, 8, 16, 32, 64, 128}) {
        add_dropped(list, fmt::format("past_tiles_{}", tile),
                    fmt::format("the last n mod {}", tile),
                    [tile](std::int64_t at, std::int64_t n) { return at < n / tile * tile; });
        add_dropped(
            list, fmt::format("last_tile_{}", tile), fmt::format("the last tile of {}", tile),
            [tile](std::int64_t at, std::int64_t n) { return at / tile != (n - 1) / tile; });
        add_dropped(list, fmt::format("from_{}", tile), fmt::format("all past the first {}", tile),
                    [tile](std::int64_t at, std::int64_t) { return at < tile; });
    }
    return list;
}

}  // namespace attest::diagnosis
