// Deviations of what backward makes of the gradient of the log-sum-exp: dS = P (dP - dO.O + dL).
// That of another row is in other_row_deviations.cpp.

#include <fmt/format.h>

#include <numbers>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

BackwardDeviation d_lse(std::string id, std::string says,
                        std::function<Near(const ModelRow&)> value) {
    return exchanged_step(
        std::move(id), std::move(says),
        [value = std::move(value)](const BackwardCall&, ModelSteps& s) { s.d_lse = value; });
}

struct Factor {
    const char *id, *says;
    double (*of)(const ModelRow&);
};

constexpr Factor factors[] = {
    {"negated", "the gradient of the LSE of the other sign", [](const ModelRow&) { return -1.0; }},
    {"twice", "twice the gradient of the LSE", [](const ModelRow&) { return 2.0; }},
    {"half", "half the gradient of the LSE", [](const ModelRow&) { return 0.5; }},
    {"times_ln2", "the gradient of the LSE multiplied by log(2)",
     [](const ModelRow&) { return std::numbers::ln2; }},
    {"times_log2e", "the gradient of the LSE divided by log(2)",
     [](const ModelRow&) { return std::numbers::log2e; }},
    {"scaled", "the gradient of the LSE multiplied by the softmax scale",
     [](const ModelRow& row) { return row.call.call.scale; }},
    {"over_keys", "the gradient of the LSE divided by the number of keys",
     [](const ModelRow& row) { return 1.0 / static_cast<double>(row.call.problem().len_kv); }},
};

void add_lse_values(std::vector<BackwardDeviation>& list) {
    list.push_back(d_lse("lse_gradient_ignored",
                         "dS = P (dP - D): the gradient of the LSE is left out",
                         [](const ModelRow&) { return Near{}; }));
    for (const Factor& f : factors)
        list.push_back(
            d_lse(fmt::format("lse_gradient_{}", f.id), f.says,
                  [of = f.of](const ModelRow& row) { return of(row) * row.facts.d_lse; }));
    for (const RoundsTo narrow : narrow_or_own)
        list.push_back(d_lse("lse_gradient_" + id_of(narrow),
                             "the gradient of the LSE rounded to " + words_of(narrow),
                             [narrow](const ModelRow& row) {
                                 const auto format = format_in(narrow, row.call.problem());
                                 return format ? rounded_to(row.facts.d_lse, *format)
                                               : row.facts.d_lse;
                             }));
    list.push_back(d_lse("lse_gradient_of_lse", "the LSE itself where its gradient is meant",
                         [](const ModelRow& row) { return row.facts.lse; }));
}

/// In some heads of a group alone.
void add_lse_heads(std::vector<BackwardDeviation>& list) {
    list.push_back(d_lse("lse_gradient_first_of_group",
                         "the gradient of the LSE in the first query head of each group alone",
                         [](const ModelRow& row) {
                             return row.h % row.call.call.group == 0 ? row.facts.d_lse : Near{};
                         }));
    list.push_back(d_lse("lse_gradient_key_heads",
                         "the gradient of the LSE in as many heads as there are key heads alone",
                         [](const ModelRow& row) {
                             return row.h < row.call.problem().heads_kv ? row.facts.d_lse : Near{};
                         }));
}

/// dS and the sinks apart, which a kernel computes apart.
void add_lse_places(std::vector<BackwardDeviation>& list) {
    list.push_back(
        exchanged_step("lse_gradient_unweighted",
                       "dS = P (dP - D) + dLSE, the gradient of the LSE without its weight",
                       [](const BackwardCall&, ModelSteps& s) {
                           s.ds = [](const ModelPair& pair) {
                               const Near own = pair.row.facts.d_lse;
                               return plain_ds(pair, pair.row.delta + own) + own;
                           };
                       }));
    list.push_back(exchanged_step("lse_gradient_not_in_sinks",
                                  "a sink's gradient without the gradient of the LSE",
                                  [](const BackwardCall&, ModelSteps& s) {
                                      s.sink_term = [](const ModelRow& row, Near weight) {
                                          return -(weight * (row.delta + row.facts.d_lse));
                                      };
                                  }));
    list.push_back(
        exchanged_step("lse_gradient_in_sinks_alone",
                       "dS = P (dP - D): the gradient of the LSE reaches the sinks alone",
                       [](const BackwardCall&, ModelSteps& s) {
                           s.ds = [](const ModelPair& pair) {
                               return plain_ds(pair, pair.row.delta + pair.row.facts.d_lse);
                           };
                       }));
    list.push_back(
        exchanged_step("lse_gradient_dropped", "the gradient of the LSE dropped with the weights",
                       [](const BackwardCall&, ModelSteps& s) {
                           s.ds = [](const ModelPair& pair) {
                               const Near own = pair.row.facts.d_lse;
                               return plain_ds(pair, pair.row.delta + own - pair.facts.kept * own);
                           };
                       }));
}

}  // namespace

std::vector<BackwardDeviation> lse_gradient_deviations() {
    std::vector<BackwardDeviation> list;
    add_lse_values(list);
    add_lse_heads(list);
    add_lse_places(list);
    return list;
}

}  // namespace attest::diagnosis
