// The online softmax done wrongly: what is summed so far is not rescaled where a later tile has a
// larger maximum.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// What is left as it was when the maximum grows.
enum class NotRescaled : std::uint8_t { both, output, sum };
/// last_seen: the last one that the query sees a key of.
enum class InTiles : std::uint8_t { all, last, last_seen };

// For each key the running maximum its weight was taken by, by tiles of `tile` keys.
std::vector<double> maximum_at(const oracle::RowDetail& row, KeyExtent span, std::int64_t tile) {
    std::vector<double> at(row.scores.size(), row.max);
    double running = -std::numeric_limits<double>::infinity();
    for (std::int64_t from = span.begin; from < span.end; from += tile) {
        const auto to = std::min(from + tile, span.end);
        for (std::int64_t j = from; j < to; ++j)
            running = std::max(running, row.scores[static_cast<std::size_t>(j)]);
        std::fill(at.begin() + from, at.begin() + to, running);
    }
    return at;
}

// exp(S - m_t) instead of exp(S - m): m - m_t is added, of every tile t, or of those before the
// last one, by the maximum before that.
std::vector<double> changes(const oracle::RowDetail& row, KeyExtent span, std::int64_t tile,
                            InTiles in) {
    if (span.begin == span.end) return {};
    const std::vector<double> at = maximum_at(row, span, tile);
    std::int64_t last_key = span.begin;
    for (std::int64_t j = span.begin; j < span.end; ++j)
        if (in == InTiles::last || row.weights[static_cast<std::size_t>(j)] > 0) last_key = j;
    const std::int64_t last = span.begin + (last_key - span.begin) / tile * tile;
    const double most =
        at[static_cast<std::size_t>(span.end - 1)];  // the sink comes after the keys
    std::vector<double> change(at.size(), 0.0);
    for (std::int64_t j = span.begin; j < span.end; ++j) {
        const auto n = static_cast<std::size_t>(j);
        if (row.weights[n] <= 0) continue;
        if (in == InTiles::all)
            change[n] = most - at[n];
        else if (j < last)
            change[n] = most - at[static_cast<std::size_t>(last - 1)];
    }
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
        [what, in, tile](const Specification&, const oracle::RowDetail& row,
                         KeyExtent span) -> std::optional<WeightChange> {
            std::vector<double> change = changes(row, span, tile, in);
            if (what == NotRescaled::both) return WeightChange{std::move(change), {}};
            if (what == NotRescaled::output) return WeightChange{std::move(change), 0.0};
            return WeightChange{{}, log_sum_change(row, change)};
        });
}

// Where the splits that a problem asks for begin: each takes ceil(keys / splits) keys.
std::int64_t keys_each(const Specification& s, KeyExtent span) {
    const std::int64_t keys = span.end - span.begin;
    const std::int64_t n =
        std::clamp<std::int64_t>(s.problem.splits, 1, std::max<std::int64_t>(1, keys));
    return (keys + n - 1) / n;
}

// exp(S - m_s) of split s instead of exp(S - m): m - m_s is added.
std::optional<WeightChange> splits_added_up(const Specification& s, const oracle::RowDetail& row,
                                            KeyExtent span) {
    if (s.problem.splits < 2 || s.problem.sink) return std::nullopt;
    const std::int64_t each = keys_each(s, span);
    WeightChange change{std::vector<double>(row.scores.size(), 0.0), {}};
    for (std::int64_t from = span.begin; from < span.end; from += each) {
        const auto to = std::min(from + each, span.end);
        const double most = *std::max_element(row.scores.begin() + from, row.scores.begin() + to);
        if (std::isfinite(most))
            std::fill(change.numerator.begin() + from, change.numerator.begin() + to,
                      row.max - most);
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
            const std::int64_t each = keys_each(s, span);
            WeightChange change{std::vector<double>(row.scores.size(), 0.0), {}};
            for (std::int64_t n = 1; n < s.problem.splits && n < span.end - span.begin; ++n)
                if (const std::int64_t key = span.begin + n * each + to; key < span.end)
                    change.numerator[static_cast<std::size_t>(key)] = std::numbers::ln2;
            return change;
        });
}

}  // namespace

std::vector<Deviation> online_deviations() {
    std::vector<Deviation> list{
        weight_deviation("splits_not_rescaled",
                         "sums of the splits added up without regard to their maxima",
                         splits_added_up),
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

}  // namespace attest::diagnosis
