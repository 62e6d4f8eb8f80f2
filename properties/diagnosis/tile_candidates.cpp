// What goes wrong in tiles of keys, of a size that only the evidence can tell: tiles that are
// skipped, counted where they lack keys, or NaN where they are hidden.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"

namespace attest::diagnosis {

namespace {

// exp(0 - m) added to the sum for each key that the last tile of a split lacks:
// l' / l = 1 + n exp(-LSE).
Deviation tail_counted(std::int64_t tile) {
    // Keys of zeros, too, wherever they can be written down.
    return as_form_of(
        fmt::format("tail_padded_{}", tile),
        weight_deviation(
            fmt::format("tail_counted_{}", tile),
            fmt::format("a sum of weights with one of score 0 for each key that the last tile of "
                        "{} lacks",
                        tile),
            [tile](const Specification& s, const oracle::RowDetail& row,
                   KeyExtent span) -> std::optional<WeightChange> {
                std::int64_t lacking = 0;
                for (const KeyExtent part : split_extents(s.problem, span))
                    lacking += (tile - (part.end - part.begin) % tile) % tile;
                return WeightChange{{},
                                    std::log1p(static_cast<double>(lacking) * std::exp(-row.lse))};
            }));
}

// Keys left out whose weight is below exp(-below). Scores as near to that as rounding moves them
// could be either.
Deviation keys_skipped(double below) {
    return weight_deviation(
        fmt::format("keys_skipped_{:g}", below),
        fmt::format("no weight for keys whose score is {:g} below the largest", below),
        [below](const Specification&, const oracle::RowDetail& row,
                KeyExtent) -> std::optional<WeightChange> {
            constexpr double rounding = 0x1p-10;
            WeightChange change{std::vector<double>(row.scores.size(), 0.0), {}};
            for (std::size_t j = 0; j < row.scores.size(); ++j) {
                if (row.shares[j] <= 0) continue;
                const double under = row.max - row.scores[j] - below;
                if (std::abs(under) < rounding * below) return std::nullopt;
                if (under > 0) change.numerator[j] = -infinite;
            }
            return change;
        });
}

// Tiles left out whose largest score is so far below the maximum of those before them, or so far
// where scores are multiplied by log2(e) for exp2.
Deviation tiles_skipped(std::int64_t tile, double units, bool exp2) {
    const double below = units * (exp2 ? std::numbers::ln2 : 1);
    return weight_deviation(
        fmt::format("tiles_skipped_{}_{:g}{}", tile, units, exp2 ? "_exp2" : ""),
        fmt::format("attention without tiles of {} keys whose largest score is {:g}{} below the "
                    "running maximum",
                    tile, units, exp2 ? " log(2)" : ""),
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
// to; a row that sees no key at all is right where that is asked at last. A window decides which
// tile that is, a causal mask whether there is one (there is where the
// query stands at a key or behind it), and a split has a first one of its own: where they could,
// nothing is claimed.
std::optional<bound::Expected> nan_behind_hidden_tiles(const Specification& s,
                                                       const bound::Expected& truth,
                                                       std::int64_t tile, bool guarded) {
    bound::Expected out = truth;
    const auto kept = rows_of(s);
    const std::vector<oracle::RowDetail>& rows = *kept;
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
        if (none && guarded) continue;
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

Deviation hidden_first_tile(std::int64_t tile, bool guarded) {
    return {
        .id = fmt::format("hidden_first_tile_{}{}", tile, guarded ? "_guarded" : ""),
        .says = fmt::format("NaN, exp(-inf + inf), where a query sees none of the first {} keys{}",
                            tile, guarded ? " and some behind them" : ""),
        .formula =
            [tile, guarded](const Specification& s, const bound::Expected& truth) {
                return nan_behind_hidden_tiles(s, truth, tile, guarded);
            },
        .form_of = fmt::format("hidden_first_tile_{}", tile)};
}

/// The first key of the first tile of which no query of a block sees a key; the last key's next
/// where there is none.
std::int64_t first_hidden_tile(const Problem& p, const std::vector<oracle::RowDetail>& rows,
                               std::int64_t first_row, std::int64_t count, std::int64_t tile) {
    for (std::int64_t from = 0; from < p.len_kv; from += tile) {
        bool seen = false;
        for (std::int64_t row = first_row; row < first_row + count && !seen; ++row) {
            const auto& scores = rows[static_cast<std::size_t>(row)].scores;
            seen =
                std::any_of(scores.begin() + from, scores.begin() + std::min(from + tile, p.len_kv),
                            [](double score) { return score > -infinite; });
        }
        if (!seen) return from;
    }
    return p.len_kv;
}

// A loop that ends where it should pass over a tile. Of one query or a block of them.
Deviation ended_by_hidden_tile(std::int64_t tile, std::int64_t queries) {
    return {.id = fmt::format("ends_at_hidden_tile_{}_{}", tile, queries),
            .says = fmt::format(
                "no key from the first tile of {} on of which {} sees none", tile,
                queries == 1 ? "the query" : fmt::format("its block of {} queries", queries)),
            .respecify = [tile, queries](const Specification& s) -> std::optional<Specification> {
                const Problem& p = s.problem;
                if (p.mask.tensor.kind == MaskKind::none || !p.mask.documents_q.empty())
                    return std::nullopt;
                const auto rows = rows_of(s);
                const std::int64_t blocks = (p.len_q + queries - 1) / queries;
                std::vector<std::int64_t> ends;
                for (std::int64_t head = 0; head < p.batch * p.heads_q; ++head)
                    for (std::int64_t i = 0; i < p.len_q; i += queries)
                        ends.push_back(first_hidden_tile(p, *rows, head * p.len_q + i,
                                                         std::min(queries, p.len_q - i), tile));
                return hiding(s, [&](const MaskPlace& at) {
                    const std::int64_t block =
                        (at.batch * p.heads_q + at.head) * blocks + at.query / queries;
                    return at.key >= ends[static_cast<std::size_t>(block)];
                });
            },
            .tells = law::Tells::visibility};
}

}  // namespace

std::vector<Deviation> tile_candidates() {
    std::vector<Deviation> list;
    // What is compared to be kept is not where it is NaN.
    const auto add_skip = [&list](Deviation d) {
        d.entails = {"nan_hides"};
        list.push_back(std::move(d));
    };
    for (const double below : {8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 25.0, 30.0, 32.0, 40.0,
                               50.0, 60.0, 64.0, 80.0, 87.0, 88.0, 100.0})
        add_skip(keys_skipped(below));
    for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
        list.push_back(tail_counted(tile));
        for (const bool guarded : {false, true}) list.push_back(hidden_first_tile(tile, guarded));
        for (const double below : {2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 20.0})
            add_skip(tiles_skipped(tile, below, false));
        for (const double below : {8.0, 10.0, 12.0, 14.0, 16.0, 17.0, 20.0, 24.0})
            add_skip(tiles_skipped(tile, below, true));
        for (const std::int64_t queries : {1, 16, 32, 64, 128})
            list.push_back(ended_by_hidden_tile(tile, queries));
    }
    return list;
}

}  // namespace attest::diagnosis
