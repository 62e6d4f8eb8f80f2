// The online softmax done wrongly: what is summed so far is not rescaled where a later tile has a
// larger maximum.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

/// The maxima after each tile of keys.
std::vector<double> running_maxima(const oracle::RowDetail& row, KeyExtent span, std::int64_t tile,
                                   double start = -infinite) {
    std::vector<double> after;
    after.reserve(static_cast<std::size_t>((span.end - span.begin + tile - 1) / tile));
    double most = start;
    for (std::int64_t from = span.begin; from < span.end; from += tile) {
        for (std::int64_t j = from; j < std::min(from + tile, span.end); ++j)
            most = std::max(most, row.scores[static_cast<std::size_t>(j)]);
        after.push_back(most);
    }
    return after;
}

/// What is left as it was when the maximum grows.
enum class NotRescaled : std::uint8_t { both, output, sum };
/// last_seen: the last one that the query sees a key of.
enum class InTiles : std::uint8_t { all, last, last_seen };
/// A sink is added behind all keys, or is what the maximum and the sum of weights start with.
enum class SinkPlace : std::uint8_t { last, first };

/// The logarithms of what weights are larger by than they should be: the keys' and the sink's.
struct NotRescaledWeights {
    std::vector<double> keys;
    double sink = 0;

    double log_sum(const oracle::RowDetail& row) const {
        const double of_keys = log_sum_change(row, keys);
        return sink == 0
                   ? of_keys
                   : std::log(std::exp(of_keys) + std::exp(row.sink - row.lse) * std::expm1(sink));
    }
};

// exp(S - m_t) instead of exp(S - m) in one split: m - m_t is added, of every tile t, or of those
// before the last one, by the maximum before that.
void add_changes(const oracle::RowDetail& row, KeyExtent span, std::int64_t tile, InTiles in,
                 double start, NotRescaledWeights& change) {
    const std::vector<double> at = running_maxima(row, span, tile, start);
    const double most = at.empty() ? start : at.back();
    std::int64_t last_key = span.begin;
    for (std::int64_t j = span.begin; j < span.end; ++j)
        if (in == InTiles::last || row.shares[static_cast<std::size_t>(j)] > 0) last_key = j;
    const std::int64_t last = span.begin + (last_key - span.begin) / tile * tile;
    const double before_last =
        last > span.begin ? at[static_cast<std::size_t>((last - 1 - span.begin) / tile)] : start;
    const auto add = [&](std::int64_t from, std::int64_t to, double by) {
        for (std::int64_t j = from; j < to; ++j)
            if (row.shares[static_cast<std::size_t>(j)] > 0)
                change.keys[static_cast<std::size_t>(j)] = most - by;
    };
    auto after = at.begin();
    if (in == InTiles::all)
        for (const KeyExtent part : parts_of(span, tile)) add(part.begin, part.end, *after++);
    else
        add(span.begin, last, before_last);
    if (std::isfinite(start)) change.sink = most - (in == InTiles::all ? start : before_last);
}

/// Of all splits; the first of them starts with the sink.
NotRescaledWeights changes(const oracle::RowDetail& row, const std::vector<KeyExtent>& parts,
                           std::int64_t tile, InTiles in, SinkPlace sink) {
    NotRescaledWeights change{std::vector<double>(row.scores.size(), 0.0)};
    double start = sink == SinkPlace::first ? row.sink : -infinite;
    for (const KeyExtent part : parts) {
        add_changes(row, part, tile, in, start, change);
        start = -infinite;
    }
    return change;
}

/// The name of the defect, or a form of it.
Deviation with_sink(SinkPlace sink, std::string id, std::string says, const WeightChangeOf& of) {
    if (sink == SinkPlace::last) return weight_deviation(std::move(id), std::move(says), of);
    return as_form_of(id, weight_deviation(id + "_sink_first", std::move(says), of));
}

Deviation not_rescaled(NotRescaled what, InTiles in, std::int64_t tile, SinkPlace sink) {
    const char* ids[] = {"", "_output", "_sum"};
    const char* subjects[] = {"sums", "a sum of values", "a sum of weights"};
    const auto n = static_cast<std::size_t>(what);
    const std::string tiles = tile == 1 ? "a key" : "a tile of " + std::to_string(tile) + " keys";
    const char* places[] = {"", "_last", "_last_seen"};
    const char* where[] = {"", "the last, ", "the last that is seen, "};
    const auto k = static_cast<std::size_t>(in);
    return of_parts(with_sink(
        sink, std::string("not_rescaled") + places[k] + ids[n] + "_" + std::to_string(tile),
        std::string(subjects[n]) + " not rescaled where " + where[k] + tiles +
            " has a larger maximum",
        [what, in, tile, sink](const Specification& s, const oracle::RowDetail& row,
                               KeyExtent span) -> std::optional<WeightChange> {
            NotRescaledWeights change =
                changes(row, split_extents(s.problem, span), tile, in, sink);
            const double sum = change.log_sum(row);
            if (what == NotRescaled::both && change.sink == 0)
                return WeightChange{std::move(change.keys), {}};
            if (what == NotRescaled::both) return WeightChange{std::move(change.keys), sum};
            if (what == NotRescaled::output) return WeightChange{std::move(change.keys), 0.0};
            return WeightChange{{}, sum};
        }));
}

// l alone, in the last tile. None where the mask tensor hides the last tile or tiles that no other
// rule does: a kernel may pass over them or not.
Deviation last_sum_not_rescaled(std::int64_t tile, bool splits_of_whole, SinkPlace sink) {
    return with_sink(
        sink, "not_rescaled_last_sum_" + std::to_string(tile) + (splits_of_whole ? "_whole" : ""),
        "a sum of weights not rescaled where the last tile of " + std::to_string(tile) + " keys" +
            (splits_of_whole ? ", of a split that has whole ones," : "") + " has a larger maximum",
        [tile, splits_of_whole, sink](const Specification& s, const oracle::RowDetail& row,
                                      KeyExtent span) -> std::optional<WeightChange> {
            const auto ways = splits_of_tiles(s.problem, span, tile);
            const auto& parts = splits_of_whole ? ways.back() : ways.front();
            const NotRescaledWeights last = changes(row, parts, tile, InTiles::last, sink),
                                     seen = changes(row, parts, tile, InTiles::last_seen, sink);
            if (s.problem.mask.tensor.kind != MaskKind::none && last.keys != seen.keys)
                return std::nullopt;
            return WeightChange{{}, seen.log_sum(row)};
        });
}

// What a maximum grows by, where that is less than the limit, is added to all before it. None where
// a growth could lie on either side.
std::optional<std::vector<double>> growth_below(const std::vector<KeyExtent>& parts,
                                                const oracle::RowDetail& row, std::int64_t tile,
                                                double limit) {
    // A score lies within 16 roundings of f32 of the largest of its row. Where it lies further off,
    // a name is missed, no wrong one given.
    double largest = 1;
    for (const double score : row.scores)
        if (std::isfinite(score)) largest = std::max(largest, std::abs(score));
    const double near = 0x1p-20 * largest;
    std::vector<double> change(row.scores.size(), 0.0);
    for (const KeyExtent part : parts) {
        const std::vector<double> at = running_maxima(row, part, tile);
        double later = 0;
        for (std::size_t t = at.size(); t-- > 0;) {
            const std::int64_t from = part.begin + static_cast<std::int64_t>(t) * tile;
            for (std::int64_t j = from; j < std::min(from + tile, part.end); ++j)
                if (const auto n = static_cast<std::size_t>(j); row.shares[n] > 0)
                    change[n] = later;
            const double grows = t > 0 ? at[t] - at[t - 1] : infinite;
            if (std::abs(grows - limit) < near) return std::nullopt;
            if (grows < limit) later += grows;
        }
    }
    return change;
}

Deviation rescaled_late(std::int64_t tile, double limit, bool output) {
    return of_parts(weight_deviation(
        fmt::format("rescaled_late_{}{}_{:g}", output ? "output_" : "", tile, limit),
        fmt::format("{} not rescaled where a tile of {} keys has a maximum larger by less than "
                    "{:g}, though that is subtracted from then on",
                    output ? "a sum of values" : "sums", tile, limit),
        [tile, limit, output](const Specification& s, const oracle::RowDetail& row,
                              KeyExtent span) -> std::optional<WeightChange> {
            std::optional<std::vector<double>> change;
            for (const auto& parts : splits_of_tiles(s.problem, span, tile)) {
                auto own = growth_below(parts, row, tile, limit);
                if (!own || (change && *own != *change)) return std::nullopt;
                change = std::move(own);
            }
            if (output) return WeightChange{std::move(*change), 0.0};
            return WeightChange{std::move(*change), {}};
        }));
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
            share += row.shares[static_cast<std::size_t>(j)];
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

std::vector<Deviation> sums_not_rescaled(SinkPlace sink) {
    std::vector<Deviation> list;
    for (const std::int64_t tile : {1, 16, 32, 64, 128}) {
        for (const NotRescaled what : {NotRescaled::both, NotRescaled::output, NotRescaled::sum})
            list.push_back(not_rescaled(what, InTiles::all, tile, sink));
        if (tile == 1) continue;
        for (const NotRescaled what : {NotRescaled::both, NotRescaled::output})
            for (const InTiles last : {InTiles::last, InTiles::last_seen})
                list.push_back(not_rescaled(what, last, tile, sink));
    }
    return list;
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
    std::ranges::move(sums_not_rescaled(SinkPlace::last), std::back_inserter(list));
    return list;
}

std::vector<Deviation> last_sums_not_rescaled() {
    std::vector<Deviation> list;
    for (const std::int64_t tile : {16, 32, 64, 128})
        for (const bool whole : {false, true})
            for (const SinkPlace sink : {SinkPlace::last, SinkPlace::first})
                list.push_back(last_sum_not_rescaled(tile, whole, sink));
    return list;
}

std::vector<Deviation> not_rescaled_after_sink() {
    return sums_not_rescaled(SinkPlace::first);
}

// By which a maximum may grow before a kernel rescales: those that kernels were found with, and
// what people write.
constexpr double growths_put_off[] = {
    1e-5, 1e-4, 0x1p-10, 1e-3, 2e-3, 5e-3, 1e-2, 0x1p-6,
    0.05, 0.1,  0.25,    0.5,  1,    2,    4,    8 * std::numbers::ln2,
    8,    10};

std::vector<Deviation> late_rescales() {
    std::vector<Deviation> list;
    for (const std::int64_t tile : {16, 32, 64, 128})
        for (const double limit : growths_put_off)
            for (const bool output : {false, true})
                list.push_back(rescaled_late(tile, limit, output));
    return list;
}

}  // namespace attest::diagnosis
