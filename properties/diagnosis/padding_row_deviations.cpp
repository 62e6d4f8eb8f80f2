// Deviations of backward in which rows past a sequence's length take part.

#include <fmt/format.h>

#include "properties/diagnosis/backward_deviation.hpp"
#include "properties/law/compare.hpp"

namespace attest::diagnosis {

namespace {

/// Dropped as any weight of the row would be, or not at all.
BackwardDeviation of_one(std::int64_t tile, bool undropped, std::string id,
                         const std::string& rows) {
    return exchanged_step(
        std::move(id), rows + " with every weight 1, as of scores and LSE 0",
        [tile, undropped](const BackwardCall& call, ModelSteps& s) {
            s.past_lengths = tile;
            if (undropped && call.problem().dropout.p > 0)
                s.dp_kept = s.value_kept = [](const ModelPair& pair) {
                    return pair.row.facts.is_query ? pair.facts.kept : 1;
                };
            s.sees = [](const ModelRow& row, std::int64_t j, bool is) {
                return row.facts.is_query ? is : row.call.score(row.b, row.h, row.i, j).inside;
            };
            s.probability = [](const ModelPair& pair) {
                return pair.row.facts.is_query ? plain_probability(pair) : Near{1, 0};
            };
        });
}

/// With this LSE, and the gradient of it that is given or none.
BackwardDeviation like_any_other(std::int64_t tile, double lse, bool reads_d_lse, std::string id,
                                 std::string says) {
    return exchanged_step(std::move(id), std::move(says), [=](const BackwardCall&, ModelSteps& s) {
        s.past_lengths = tile;
        s.lse = [lse](const ModelRow& row) { return row.facts.is_query ? row.lse : Near{lse, 0}; };
        if (!reads_d_lse)
            s.d_lse = [](const ModelRow& row) {
                return row.facts.is_query ? row.facts.d_lse : Near{};
            };
    });
}

}  // namespace

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
            for (const bool reads_d_lse : {true, false})
                list.push_back(like_any_other(tile, padding_lse, reads_d_lse, "past_lengths" + id,
                                              rows + " like any other"));
        for (const bool undropped : {false, true})
            list.push_back(of_one(tile, undropped, "past_lengths_of_one" + id, rows));
    }
    return list;
}

}  // namespace attest::diagnosis
