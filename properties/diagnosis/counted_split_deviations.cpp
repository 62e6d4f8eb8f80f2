// Splits merged wrongly, and what has no key and is counted all the same: a split that a query sees
// nothing of, the slots that the last tile of a sequence lacks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// Keys of the query's sequence that a split takes: as many for each, or as many whole tiles.
std::int64_t keys_of_split(const Problem& p, KeyExtent span, std::int64_t tile) {
    const std::int64_t tiles = (span.end - span.begin + tile - 1) / tile;
    return std::max<std::int64_t>(1, tile * ((tiles + p.splits - 1) / p.splits));
}

// Maximum 0, sum 1 and a value of zeros, in each of the splits asked for that the query sees no key
// of: l' / l = 1 + n exp(-LSE).
Deviation empty_splits_counted(std::int64_t tile) {
    return weight_deviation(
        fmt::format("empty_splits_counted_{}", tile),
        fmt::format("each split{} in which a query sees no key merged as one of score 0 and value "
                    "0",
                    tile == 1 ? "" : fmt::format(", of whole tiles of {},", tile)),
        [tile](const Specification& s, const oracle::RowDetail& row,
               KeyExtent span) -> std::optional<WeightChange> {
            const Problem& p = s.problem;
            if (p.splits < 2) return WeightChange{};
            const std::int64_t each = keys_of_split(p, span, tile);
            double empty = static_cast<double>(p.splits);
            for (std::int64_t from = span.begin; from < span.end; from += each) {
                std::int64_t j = from;
                const std::int64_t to = std::min(from + each, span.end);
                while (j < to && !(row.scores[static_cast<std::size_t>(j)] > -infinite)) ++j;
                empty -= j < to;
            }
            return WeightChange{{}, std::log1p(empty * std::exp(-row.lse))};
        });
}

bool nothing_hidden(const Problem& p) {
    return !p.mask.causal && p.mask.window.right < 0 && p.mask.tensor.kind == MaskKind::none;
}

// Slots behind the last key of a sequence, score 0 and value 0: l' / l = 1 + n exp(-LSE). The last
// tile is one of the sequence, whatever the splits.
Deviation slots_counted(std::int64_t tile, bool unmasked) {
    return weight_deviation(
        fmt::format("slots_counted_{}{}", unmasked ? "unmasked_" : "", tile),
        fmt::format("the slots that a sequence's last tile of {} keys lacks counted with score 0 "
                    "and value 0{}",
                    tile, unmasked ? ", but where a mask hides what is behind a key" : ""),
        [tile, unmasked](const Specification& s, const oracle::RowDetail& row,
                         KeyExtent span) -> std::optional<WeightChange> {
            if (unmasked && !nothing_hidden(s.problem)) return WeightChange{};
            const std::int64_t lacking = (tile - (span.end - span.begin) % tile) % tile;
            return WeightChange{{}, std::log1p(static_cast<double>(lacking) * std::exp(-row.lse))};
        });
}

// exp(0 - m) more in the sum: softmax of "one more than nothing", as if a sink of 0 were asked for.
Deviation one_added() {
    return weight_deviation("sum_and_one",
                            "one weight exp(0) more in the sum, as if there were a sink of 0",
                            [](const Specification&, const oracle::RowDetail& row,
                               KeyExtent) -> std::optional<WeightChange> {
                                return WeightChange{{}, std::log1p(std::exp(-row.lse))};
                            });
}

// As many whole tiles for each split as go in, and no split for those left over.
Deviation split_tiles_dropped(std::int64_t tile) {
    return {.id = fmt::format("split_tiles_dropped_{}", tile),
            .says = fmt::format("as many whole tiles of {} keys for each split as go in, without "
                                "those left over",
                                tile),
            .respecify = [tile](const Specification& s) -> std::optional<Specification> {
                const std::int64_t splits = s.problem.splits;
                if (splits < 2) return std::nullopt;
                Rules rules = rules_of(s);
                rules.also_hidden = [=](const MaskPlace& p) {
                    const std::int64_t tiles = (p.len_kv + tile - 1) / tile;
                    return p.column >= splits * tile * std::max<std::int64_t>(1, tiles / splits);
                };
                return with_rules(s, rules);
            }};
}

/// What the splits' maxima are left out of.
struct LeftOut {
    const char *id, *says;
    bool values, weights;
};
constexpr LeftOut merged_without[] = {
    {"sums", "sums", true, true},
    {"weights", "sums of weights", false, true},
    {"values", "sums of values", true, false},
};

// exp(S - m_s) instead of exp(S - m) of split s: m - m_s is added.
Deviation splits_of_tiles_added(const LeftOut& of, std::int64_t tile) {
    return weight_deviation(
        fmt::format("splits_added_{}_{}", of.id, tile),
        fmt::format("{} of the splits{} added up without regard to their maxima", of.says,
                    tile == 1 ? "" : fmt::format(", of whole tiles of {},", tile)),
        [of, tile](const Specification& s, const oracle::RowDetail& row,
                   KeyExtent span) -> std::optional<WeightChange> {
            if (s.problem.splits < 2) return WeightChange{};
            if (s.problem.sink) return std::nullopt;
            const std::int64_t each = keys_of_split(s.problem, span, tile);
            std::vector<double> change(row.scores.size(), 0.0);
            for (std::int64_t from = span.begin; from < span.end; from += each) {
                const std::int64_t to = std::min(from + each, span.end);
                const double most =
                    *std::max_element(row.scores.begin() + from, row.scores.begin() + to);
                if (std::isfinite(most))
                    std::fill(change.begin() + from, change.begin() + to, row.max - most);
            }
            const double sum = of.weights ? log_sum_change(row, change) : 0.0;
            if (!of.values) return WeightChange{{}, sum};
            return WeightChange{std::move(change), sum};
        });
}

}  // namespace

std::vector<Deviation> counted_without_keys() {
    std::vector<Deviation> list{one_added()};
    for (const std::int64_t tile : {16, 32, 64, 128}) list.push_back(split_tiles_dropped(tile));
    for (const LeftOut& of : merged_without)
        for (const std::int64_t tile : {1, 16, 32, 64, 128})
            list.push_back(splits_of_tiles_added(of, tile));
    for (const std::int64_t tile : {1, 16, 32, 64, 128}) list.push_back(empty_splits_counted(tile));
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
        for (const bool unmasked : {true, false}) list.push_back(slots_counted(tile, unmasked));
    return list;
}

}  // namespace attest::diagnosis
