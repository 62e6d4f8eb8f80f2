// Deviations of backward in which rows past a sequence's length take part.

#include <fmt/format.h>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/law/compare.hpp"

namespace attest::diagnosis {

/// Which keys rows past a sequence's length weigh, and how: by their own scores, or all by 1, which
/// is exp(0 - 0) of scores and an LSE that were cleared.
std::vector<BackwardDeviation> padding_row_deviations() {
    std::vector<BackwardDeviation> list;
    constexpr std::int64_t all = ModelSteps::all_rows;
    for (const std::int64_t tile : {all, std::int64_t{4}, std::int64_t{8}, std::int64_t{16},
                                    std::int64_t{32}, std::int64_t{64}, std::int64_t{128}}) {
        const std::string id = tile == all ? "" : fmt::format("_{}", tile);
        const std::string rows =
            tile == all
                ? "rows past a sequence's length"
                : fmt::format("rows past a sequence's length, up to a multiple of {},", tile);
        for (const double padding_lse : {0.0, -infinite})
            list.push_back(
                exchanged_step("past_lengths" + id, rows + " like any other",
                               [tile, padding_lse](const BackwardCall&, ModelSteps& s) {
                                   s.past_lengths = tile;
                                   s.lse = [padding_lse](const ModelRow& row) {
                                       return row.facts.is_query ? row.lse : Near{padding_lse, 0};
                                   };
                               }));
        list.push_back(exchanged_step(
            "past_lengths_of_one" + id, rows + " with every weight 1, as of scores and LSE 0",
            [tile](const BackwardCall&, ModelSteps& s) {
                s.past_lengths = tile;
                s.sees = [](const ModelRow& row, std::int64_t j, bool is) {
                    return row.facts.is_query ? is : row.call.score(row.b, row.h, row.i, j).inside;
                };
                s.probability = [](const ModelPair& pair) {
                    return pair.row.facts.is_query ? plain_probability(pair) : Near{1, 0};
                };
            }));
    }
    return list;
}

}  // namespace attest::diagnosis
