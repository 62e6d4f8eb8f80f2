// The online softmax done wrongly: what is summed so far is not rescaled where a later tile has a
// larger maximum.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// The maxima after each tile of keys, and the last of them.
struct RunningMaxima {
    std::vector<double> after;
    double last = -infinite;
};

RunningMaxima running_maxima(const oracle::RowDetail& row, KeyExtent span, std::int64_t tile) {
    RunningMaxima m;
    for (std::int64_t from = span.begin; from < span.end; from += tile) {
        for (std::int64_t j = from; j < std::min(from + tile, span.end); ++j)
            m.last = std::max(m.last, row.scores[static_cast<std::size_t>(j)]);
        m.after.push_back(m.last);
    }
    return m;
}

/// What is left as it was when the maximum grows.
enum class NotRescaled : std::uint8_t { both, output, sum };
/// last_seen: the last one that the query sees a key of.
enum class InTiles : std::uint8_t { all, last, last_seen };

// exp(S - m_t) instead of exp(S - m) in one split: m - m_t is added, of every tile t, or of those
// before the last one, by the maximum before that.
void add_changes(const oracle::RowDetail& row, KeyExtent span, std::int64_t tile, InTiles in,
                 std::vector<double>& change) {
    const auto [at, most] = running_maxima(row, span, tile);
    std::int64_t last_key = span.begin;
    for (std::int64_t j = span.begin; j < span.end; ++j)
        if (in == InTiles::last || row.weights[static_cast<std::size_t>(j)] > 0) last_key = j;
    const std::int64_t last = span.begin + (last_key - span.begin) / tile * tile;
    for (std::int64_t j = span.begin; j < span.end; ++j) {
        const auto n = static_cast<std::size_t>(j);
        if (row.weights[n] <= 0) continue;
        const auto of = [&](std::int64_t key) {
            return at[static_cast<std::size_t>((key - span.begin) / tile)];
        };
        if (in == InTiles::all)
            change[n] = most - of(j);
        else if (j < last)
            change[n] = most - of(last - 1);
    }
}

std::vector<double> changes(const Problem& problem, const oracle::RowDetail& row, KeyExtent span,
                            std::int64_t tile, InTiles in) {
    std::vector<double> change(row.scores.size(), 0.0);
    for (const KeyExtent part : split_extents(problem, span))
        add_changes(row, part, tile, in, change);
    return change;
}

Deviation not_rescaled(NotRescaled what, InTiles in, std::int64_t tile) {
    const char* ids[] = {"", "_output", "_sum"};
    const char* subjects[] = {"sums", "a sum of values", "a sum of weights"};
    const auto n = static_cast<std::size_t>(what);
    const std::string tiles = tile == 1 ? "a key" : "a tile of " + std::to_string(tile) + " keys";
    const char* places[] = {"", "_last", "_last_seen"};
    const char* where[] = {"", "the last, ", "the last that is seen, "};
    const auto k = static_cast<std::size_t>(in);
    return weight_deviation(
        std::string("not_rescaled") + places[k] + ids[n] + "_" + std::to_string(tile),
        std::string(subjects[n]) + " not rescaled where " + where[k] + tiles +
            " has a larger maximum",
        [what, in, tile](const Specification& s, const oracle::RowDetail& row,
                         KeyExtent span) -> std::optional<WeightChange> {
            std::vector<double> change = changes(s.problem, row, span, tile, in);
            if (what == NotRescaled::both) return WeightChange{std::move(change), {}};
            if (what == NotRescaled::output) return WeightChange{std::move(change), 0.0};
            return WeightChange{{}, log_sum_change(row, change)};
        });
}

// exp(S - m_s) of split s instead of exp(S - m): m - m_s is added.
std::optional<WeightChange> splits_added_up(const Specification& s, const oracle::RowDetail& row,
                                            KeyExtent span) {
    if (s.problem.splits < 2 || s.problem.sink) return std::nullopt;
    WeightChange change{std::vector<double>(row.scores.size(), 0.0), {}};
    for (const KeyExtent part : split_extents(s.problem, span)) {
        const auto from = change.numerator.begin() + part.begin;
        const double most =
            *std::max_element(row.scores.begin() + part.begin, row.scores.begin() + part.end);
        if (std::isfinite(most)) std::fill(from, from + (part.end - part.begin), row.max - most);
    }
    return change;
}

// exp(m_s) O_s instead of exp(L_s) O_s: m_s - L_s is added to the scores of split s.
std::optional<WeightChange> merged_by_maxima(const Specification& s, const oracle::RowDetail& row,
                                             KeyExtent span) {
    if (s.problem.splits < 2 || s.problem.sink) return std::nullopt;
    WeightChange change{std::vector<double>(row.scores.size(), 0.0), {}};
    for (const KeyExtent part : split_extents(s.problem, span)) {
        double most = -infinite, share = 0;
        for (std::int64_t j = part.begin; j < part.end; ++j) {
            most = std::max(most, row.scores[static_cast<std::size_t>(j)]);
            share += row.weights[static_cast<std::size_t>(j)];
        }
        if (!(share > 0)) continue;
        std::fill(change.numerator.begin() + part.begin, change.numerator.begin() + part.end,
                  most - row.lse - std::log(share));
    }
    return change;
}

// The key before each split's first, which the one before has too, or the key behind its last. A
// split behind the last key may have that one.
Deviation overlapping_splits(const std::string& id, const std::string& says, std::int64_t to) {
    return weight_deviation(
        id, says,
        [to](const Specification& s, const oracle::RowDetail& row,
             KeyExtent span) -> std::optional<WeightChange> {
            if (s.problem.splits < 2) return std::nullopt;
            const std::vector<KeyExtent> parts = split_extents(s.problem, span);
            WeightChange change{std::vector<double>(row.scores.size(), 0.0), {}};
            for (std::int64_t n = 1; n < s.problem.splits && n < span.end - span.begin; ++n)
                if (const std::int64_t key =
                        span.begin + n * (parts.front().end - parts.front().begin) + to;
                    key < span.end)
                    change.numerator[static_cast<std::size_t>(key)] = std::numbers::ln2;
            return change;
        });
}

// exp(0 - m) added to the sum for each key that the last tile of a split lacks:
// l' / l = 1 + n exp(-LSE).
Deviation tail_counted(std::int64_t tile) {
    return weight_deviation(
        fmt::format("tail_counted_{}", tile),
        fmt::format("a sum of weights with one of score 0 for each key that the last tile of {} "
                    "lacks",
                    tile),
        [tile](const Specification& s, const oracle::RowDetail& row,
               KeyExtent span) -> std::optional<WeightChange> {
            std::int64_t lacking = 0;
            for (const KeyExtent part : split_extents(s.problem, span))
                lacking += (tile - (part.end - part.begin) % tile) % tile;
            return WeightChange{{}, std::log1p(static_cast<double>(lacking) * std::exp(-row.lse))};
        });
}

// Tiles left out whose largest score is so far below the maximum of those before them.
Deviation tiles_skipped(std::int64_t tile, double below) {
    return weight_deviation(
        fmt::format("tiles_skipped_{}_{:g}", tile, below),
        fmt::format("attention without tiles of {} keys whose largest score is {:g} below the "
                    "running maximum",
                    tile, below),
        [tile, below](const Specification& s, const oracle::RowDetail& row,
                      KeyExtent span) -> std::optional<WeightChange> {
            WeightChange change{std::vector<double>(row.scores.size(), 0.0), {}};
            for (const KeyExtent part : split_extents(s.problem, span)) {
                double most = -infinite;
                for (std::int64_t from = part.begin; from < part.end; from += tile) {
                    const auto to = std::min(from + tile, part.end);
                    const double own =
                        *std::max_element(row.scores.begin() + from, row.scores.begin() + to);
                    if (own < most - below)
                        std::fill(change.numerator.begin() + from, change.numerator.begin() + to,
                                  -infinite);
                    most = std::max(most, own);
                }
            }
            return change;
        });
}

// exp(-inf - -inf), NaN for good, where a query sees no key of the first tile that its block comes
// to. A window decides which tile that is, a causal mask whether there is one (there is where the
// query stands at a key or behind it), and a split has a first one of its own: where they could,
// nothing is claimed.
std::optional<bound::Expected> nan_behind_hidden_tiles(const Specification& s,
                                                       const bound::Expected& truth,
                                                       std::int64_t tile) {
    bound::Expected out = truth;
    const std::vector<oracle::RowDetail> rows = oracle::row_details(s.problem, s.dialect, s.inputs);
    const Mask& mask = s.problem.mask;
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    bool any = false;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto flat = static_cast<std::int64_t>(row);
        const std::int64_t b = flat / s.problem.len_q / s.problem.heads_q;
        const std::int64_t i = flat % s.problem.len_q;
        const KeyExtent span = span_of(s, b, i);
        if (i >= length_of(mask.lens_q, s.problem.len_q, b) || span.begin == span.end) continue;
        std::int64_t seen = span.begin;
        while (seen < span.end && !(rows[row].scores[static_cast<std::size_t>(seen)] > -infinite))
            ++seen;
        const bool none = seen == span.end;
        if (!none && seen < span.begin + tile && s.problem.splits < 2) continue;
        const bool ends = mask.causal || mask.window.right >= 0;
        const bool reached =
            mask.documents_q.empty() && i + span.end >= length_of(mask.lens_q, s.problem.len_q, b);
        const bool known =
            s.problem.splits < 2 && mask.window.left < 0 && !(none && ends && !reached);
        any = any || known;
        const bound::ExpectedElement e{known ? std::nan("") : 0, 0, known ? 0 : infinite};
        std::fill_n(out.output.begin() + flat * static_cast<std::ptrdiff_t>(dim), dim, e);
        if (row < out.lse.size()) out.lse[row] = {0, 0, infinite};
    }
    return any ? std::optional(std::move(out)) : std::nullopt;
}

Deviation hidden_first_tile(std::int64_t tile) {
    return {.id = fmt::format("hidden_first_tile_{}", tile),
            .says = fmt::format(
                "NaN, exp(-inf + inf), where a query sees none of the first {} keys", tile),
            .formula = [tile](const Specification& s, const bound::Expected& truth) {
                return nan_behind_hidden_tiles(s, truth, tile);
            }};
}

}  // namespace

std::vector<Deviation> online_deviations() {
    std::vector<Deviation> list{
        weight_deviation("splits_not_rescaled",
                         "sums of the splits added up without regard to their maxima",
                         splits_added_up),
        weight_deviation("splits_merged_by_maxima",
                         "splits merged by their maxima alone, not by their log-sum-exp",
                         merged_by_maxima),
        overlapping_splits("splits_overlap", "splits that each take the key before their first too",
                           -1),
        overlapping_splits("splits_overlap_behind",
                           "splits that each take the key behind their last too", 0),
    };
    for (const std::int64_t tile : {1, 16, 32, 64, 128}) {
        for (const NotRescaled what : {NotRescaled::both, NotRescaled::output, NotRescaled::sum})
            list.push_back(not_rescaled(what, InTiles::all, tile));
        if (tile == 1) continue;
        for (const NotRescaled what : {NotRescaled::both, NotRescaled::output})
            for (const InTiles last : {InTiles::last, InTiles::last_seen})
                list.push_back(not_rescaled(what, last, tile));
    }
    return list;
}

std::vector<Deviation> tile_candidates() {
    std::vector<Deviation> list;
    for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
        list.push_back(tail_counted(tile));
        list.push_back(hidden_first_tile(tile));
        for (const double below : {2.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0})
            list.push_back(tiles_skipped(tile, below));
    }
    return list;
}

}  // namespace attest::diagnosis
