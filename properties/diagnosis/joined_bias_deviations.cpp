// Deviations of the gradient of a bias that sequences, heads or queries share: overwritten, or
// averaged, where it is the sum.

#include <fmt/format.h>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// A sequence, or a document of one.
std::int64_t segment(const ModelRow& row) {
    const Problem& p = row.call.problem();
    return row.b * p.len_q + segment_of(p, row.b, row.i).queries.begin;
}

struct Owner {
    const char *id, *says;
    std::function<std::int64_t(const ModelRow&)> of;
};

}  // namespace

std::vector<BackwardDeviation> joined_bias_deviations() {
    const Owner owners[] = {
        {"_sequence", " sequence or document alone", segment},
        {"_head", " head alone",
         [](const ModelRow& row) { return segment(row) * row.call.problem().heads_q + row.h; }},
        {"", " of what a bias is added to", {}}};
    std::vector<BackwardDeviation> list;
    for (const Owner& owner : owners)
        for (const Joining how : {Joining::last, Joining::first}) {
            const char* which = how == Joining::last ? "last" : "first";
            list.push_back(
                exchanged_step(fmt::format("mask_{}{}", which, owner.id),
                               fmt::format("that of the {}{}, where a bias gradient is the sum",
                                           which, owner.says),
                               [how, of = owner.of](const BackwardCall&, ModelSteps& s) {
                                   s.mask = how;
                                   s.mask_owner = of;
                               }));
        }
    // Of the last, though it may have no query.
    list.push_back(exchanged_step("mask_last_sequence", list.front().says,
                                  [](const BackwardCall&, ModelSteps& s) {
                                      s.mask_term = [](const ModelPair& pair, Near term) {
                                          return of_last_packed(pair.row) ? term : Near{};
                                      };
                                  }));
    list.push_back(exchanged_step(
        "mask_mean", "the mean of what a bias is added to, where its gradient is the sum",
        [](const BackwardCall&, ModelSteps& s) { s.mask = Joining::mean; }));
    return list;
}

}  // namespace attest::diagnosis
