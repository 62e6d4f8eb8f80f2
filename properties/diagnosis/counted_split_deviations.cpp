// Splits merged wrongly, and what has no key and is counted all the same: a split that a query sees
// nothing of, the slots that the last tile of a sequence lacks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// What splits are made of: tiles of so many keys, or the pages where there are pages.
struct SplitUnit {
    std::int64_t tile = 1;
    bool pages = false;

    std::int64_t keys(const Problem& p) const {
        return pages && p.cache.page_size > 0 ? p.cache.page_size : tile;
    }
    std::string id() const { return fmt::format("{}{}", tile, pages ? "_pages" : ""); }
    std::string says() const {
        return pages ? fmt::format("pages, or where there are none tiles of {} keys", tile)
                     : fmt::format("tiles of {} keys", tile);
    }
};

std::vector<SplitUnit> units_of(const std::vector<std::int64_t>& tiles, bool paged) {
    std::vector<SplitUnit> list;
    for (const bool pages : {false, true})
        for (const std::int64_t tile : tiles)
            if (paged || !pages) list.push_back({tile, pages});
    return list;
}

/// The keys of the query's sequence that each split takes: as many whole units for each. Splits
/// that get none are left out.
std::vector<KeyExtent> splits_of(const Problem& p, KeyExtent span, SplitUnit unit) {
    const std::int64_t keys = unit.keys(p), units = (span.end - span.begin + keys - 1) / keys;
    return parts_of(span, std::max<std::int64_t>(1, keys * ((units + p.splits - 1) / p.splits)));
}

double largest_of(const oracle::RowDetail& row, KeyExtent keys) {
    return *std::max_element(row.scores.begin() + keys.begin, row.scores.begin() + keys.end);
}

std::string of_whole_tiles(std::int64_t tile) {
    return tile == 1 ? "" : fmt::format(", of whole tiles of {},", tile);
}

// Maximum 0, sum 1 and a value of zeros, in each of the splits asked for that the query sees no key
// of: l' / l = 1 + n exp(-LSE). Of a query that sees none the sum is 1 where there is one split.
Deviation empty_splits_counted(SplitUnit unit) {
    Deviation d = weight_deviation(
        fmt::format("empty_splits_counted_{}", unit.id()),
        fmt::format("each split{} in which a query sees no key merged as one of score 0 and value "
                    "0",
                    unit.tile == 1 && !unit.pages ? "" : ", of whole " + unit.says() + ","),
        [unit](const Specification& s, const oracle::RowDetail& row,
               KeyExtent span) -> std::optional<WeightChange> {
            const Problem& p = s.problem;
            if (p.splits < 2) return WeightChange{};
            double empty = static_cast<double>(p.splits);
            for (const KeyExtent keys : splits_of(p, span, unit))
                empty -= largest_of(row, keys) > -infinite;
            return WeightChange{{}, std::log1p(empty * std::exp(-row.lse))};
        });
    d.entails = {"lse_empty_zero"};
    return as_form_of("empty_splits_counted", std::move(d));
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

// As many whole units for each split as go in, and no split for those left over.
Deviation split_tiles_dropped(SplitUnit unit) {
    return {.id = fmt::format("split_tiles_dropped_{}", unit.id()),
            .says = fmt::format("as many whole {} for each split as go in, without those left over",
                                unit.says()),
            .respecify = [unit](const Specification& s) -> std::optional<Specification> {
                const std::int64_t splits = s.problem.splits, keys = unit.keys(s.problem);
                if (splits < 2) return std::nullopt;
                return hiding(s, [=](const MaskPlace& p) {
                    const std::int64_t units = (p.len_kv + keys - 1) / keys;
                    return p.column < p.len_kv &&
                           p.column >= splits * keys * std::max<std::int64_t>(1, units / splits);
                });
            },
            .form_of = "split_tiles_dropped"};
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
                    of_whole_tiles(tile)),
        [of, tile](const Specification& s, const oracle::RowDetail& row,
                   KeyExtent span) -> std::optional<WeightChange> {
            if (s.problem.splits < 2) return WeightChange{};
            if (s.problem.sink) return std::nullopt;
            std::vector<double> change(row.scores.size(), 0.0);
            for (const KeyExtent keys : splits_of(s.problem, span, {tile}))
                if (const double most = largest_of(row, keys); std::isfinite(most))
                    std::fill(change.begin() + keys.begin, change.begin() + keys.end,
                              row.max - most);
            const double sum = of.weights ? log_sum_change(row, change) : 0.0;
            if (!of.values) return WeightChange{{}, sum};
            return WeightChange{std::move(change), sum};
        });
}

/// What the splits' sums are merged by: their maxima, or their log-sum-exps; taken in one base and
/// raised in another.
struct MergedBy {
    const char *id, *says;
    bool sums;
    double factor;
};
constexpr MergedBy merged_by[] = {
    {"maxima_exp2", "exp of their maxima in base 2", false, std::numbers::log2e},
    {"maxima_exp", "exp2 of their maxima", false, std::numbers::ln2},
    {"lse_exp2", "exp of their log-sum-exps in base 2", true, std::numbers::log2e},
    {"lse_exp", "exp2 of their log-sum-exps", true, std::numbers::ln2},
};

// exp(f (m_s - m)) in place of exp(m_s - m), f being log2(e) or ln(2); or so of the log-sum-exps. A
// sink is no split: its weight is exp(sink - m), and m is the largest of it and all splits, or of
// the splits alone.
Deviation splits_of_other_base(const MergedBy& by, std::int64_t tile, bool sink_apart) {
    const std::string id = fmt::format("splits_merged_{}_{}", by.id, tile);
    Deviation d = weight_deviation(
        id + (sink_apart ? "_sink_apart" : ""),
        fmt::format("splits{} merged by {}{}", of_whole_tiles(tile), by.says,
                    sink_apart ? ", a sink left out of the largest" : ""),
        [by, tile, sink_apart](const Specification& s, const oracle::RowDetail& row,
                               KeyExtent span) -> std::optional<WeightChange> {
            if (s.problem.splits < 2 || (sink_apart && !s.problem.sink)) return WeightChange{};
            std::vector<std::pair<KeyExtent, double>> parts;
            double most = s.problem.sink && !sink_apart ? row.sink : -infinite;
            for (const KeyExtent keys : splits_of(s.problem, span, {tile})) {
                const auto lse = lse_between(row, keys);
                if (!lse) continue;
                parts.emplace_back(keys, by.sums ? *lse : largest_of(row, keys));
                most = std::max(most, parts.back().second);
            }
            std::vector<double> change(row.scores.size(), 0.0);
            for (const auto& [keys, by_this] : parts)
                std::fill(change.begin() + keys.begin, change.begin() + keys.end,
                          (by.factor - 1) * (by_this - most));
            return WeightChange{std::move(change), {}};
        });
    return sink_apart ? as_form_of(id, std::move(d)) : d;
}

}  // namespace

std::vector<Deviation> counted_without_keys(bool paged) {
    std::vector<Deviation> list{one_added()};
    for (const SplitUnit unit : units_of({16, 32, 64, 128}, paged))
        list.push_back(split_tiles_dropped(unit));
    for (const LeftOut& of : merged_without)
        for (const std::int64_t tile : {1, 16, 32, 64, 128})
            list.push_back(splits_of_tiles_added(of, tile));
    for (const SplitUnit unit : units_of({1, 16, 32, 64, 128}, paged))
        list.push_back(empty_splits_counted(unit));
    for (const MergedBy& by : merged_by)
        for (const std::int64_t tile : {1, 16, 32, 64, 128})
            for (const bool sink_apart : {false, true})
                list.push_back(splits_of_other_base(by, tile, sink_apart));
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
        for (const bool unmasked : {true, false}) list.push_back(slots_counted(tile, unmasked));
    return list;
}

}  // namespace attest::diagnosis
