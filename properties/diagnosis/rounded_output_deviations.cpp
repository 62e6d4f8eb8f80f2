// The sum over values kept in a narrower format than declared.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <memory>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

/// What of a tile is rounded: what it leaves of the sum; what is rescaled before it, too; and its
/// own products as well, where they are a matrix of that format.
enum class Rounded : std::uint8_t { sum, rescaled, products };

/// What a kernel's number may be.
struct SumRange {
    double low = 0, high = 0;

    void widen(double by) { low -= by, high += by; }
    void scale(double by) { low *= by, high *= by; }  ///< by > 0
    void round(Precision format) { low = round_to(low, format), high = round_to(high, format); }
    double size() const { return std::max(std::abs(low), std::abs(high)); }
    bool finite() const { return std::isfinite(low) && std::isfinite(high); }
};

/// The format that weights are fed to the second product in; none: that of sums.
std::optional<Precision> format_of_weights(const Specification& s) {
    switch (s.numerics.weights) {
        case NumberFormat::same:
            return s.problem.format_kv;
        case NumberFormat::f16:
            return Precision::f16;
        case NumberFormat::bf16:
            return Precision::bf16;
        default:
            return std::nullopt;
    }
}

/// A row's keys and what is known of them.
struct RowOfKeys {
    const Specification& s;
    const oracle::RowDetail& row;
    KeyExtent span;
    std::int64_t b = 0, head_kv = 0;
};

// P of key j by the running maximum, as the declared format rounds it, and what a kernel's own may
// differ by: a few roundings to f32 of the score and of exp.
SumRange weight_of(const RowOfKeys& of, std::int64_t j, double most) {
    const double below = of.row.scores[static_cast<std::size_t>(j)] - most, w = std::exp(below);
    const double off = 0x1p-21 * w * (4 + std::abs(below) + std::abs(most));
    SumRange p{w - off, w + off};
    if (const auto format = format_of_weights(of.s)) p.round(*format);
    return p;
}

SumRange product(const SumRange& p, double v) {
    SumRange out{std::min(p.low * v, p.high * v), std::max(p.low * v, p.high * v)};
    out.widen(0x1p-23 * out.size());
    return out;
}

/// A tile that holds every key of a split: its sum is rounded once.
constexpr std::int64_t whole = std::int64_t{1} << 40;

/// How often a sum is rounded, and to what.
struct Roundings {
    std::int64_t tile;
    Rounded what;
    Precision format;
    bool operator==(const Roundings&) const = default;
};

/// The keys of a tile that the row sees, and their weights by the maximum so far.
struct SeenTile {
    std::vector<std::int64_t> keys;
    std::vector<SumRange> weights;

    double add_to(double most, const RowOfKeys& of, std::int64_t from, std::int64_t to) {
        for (std::int64_t j = from; j < to; ++j)
            if (of.row.weights[static_cast<std::size_t>(j)] > 0) {
                keys.push_back(j);
                most = std::max(most, of.row.scores[static_cast<std::size_t>(j)]);
            }
        for (const std::int64_t j : keys) weights.push_back(weight_of(of, j, most));
        return most;
    }
};

// What the sum of one channel becomes with a tile more, which has `keys` keys, seen or not.
void add_tile(SumRange& sum, const RowOfKeys& of, const SeenTile& tile, std::int64_t c,
              const Roundings& roundings, std::int64_t keys) {
    const auto [_, what, format] = roundings;
    const Tensor& values = of.s.inputs[Role::v];
    SumRange own;
    double size = what == Rounded::products ? 0 : sum.size();
    for (std::size_t n = 0; n < tile.keys.size(); ++n) {
        const SumRange p = product(tile.weights[n], values.at(of.b, of.head_kv, tile.keys[n], c));
        own.low += p.low, own.high += p.high;
        size += p.size();
    }
    own.widen(0x1p-24 * static_cast<double>(keys) * size);
    if (what == Rounded::products) own.round(format);
    sum.low += own.low, sum.high += own.high;
    sum.round(format);
}

// sum_j P_j v_j of every channel over the keys of one split, by tiles, rounded after each; added to
// `sums` in the terms of O.
void add_sums_of_tiles(std::vector<SumRange>& sums, const RowOfKeys& of,
                       const Roundings& roundings) {
    double most = -infinite;
    std::vector<SumRange> own(sums.size());
    for (std::int64_t from = of.span.begin; from < of.span.end; from += roundings.tile) {
        const std::int64_t to = std::min(from + roundings.tile, of.span.end);
        const double before = most;
        SeenTile tile;
        most = tile.add_to(most, of, from, to);
        if (!std::isfinite(most)) continue;
        const bool rescales = before != most && std::isfinite(before);
        const double by = rescales ? std::exp(before - most) : 1;
        for (std::size_t c = 0; c < own.size(); ++c) {
            if (rescales) {
                own[c].scale(by);
                own[c].widen(0x1p-21 * (4 + std::abs(before - most) + std::abs(most)) *
                             own[c].size());
                if (roundings.what != Rounded::sum) own[c].round(roundings.format);
            }
            add_tile(own[c], of, tile, static_cast<std::int64_t>(c), roundings, to - from);
        }
    }
    if (!std::isfinite(most)) return;
    // By the maximum of the keys; O is this times exp(most - LSE).
    const double by = std::exp(most - of.row.lse);
    for (std::size_t c = 0; c < own.size(); ++c) {
        own[c].scale(by);
        sums[c].low += own[c].low, sums[c].high += own[c].high;
    }
}

/// Of each channel; none where it cannot be told.
using SumsOfRow = std::vector<std::optional<SumRange>>;

// Splits are added up as they are. None where they are parted in ways that tell it differently.
SumsOfRow sums_of_splits(RowOfKeys of, std::size_t channels, const Roundings& roundings) {
    SumsOfRow told;
    const KeyExtent all = of.span;
    const std::int64_t tile = roundings.tile == whole ? 1 : roundings.tile;
    for (const auto& parts : splits_of_tiles(of.s.problem, all, tile)) {
        std::vector<SumRange> sums(channels);
        for (const KeyExtent part : parts) {
            of.span = part;
            add_sums_of_tiles(sums, of, roundings);
        }
        if (told.empty()) {
            told.assign(sums.begin(), sums.end());
            continue;
        }
        for (std::size_t c = 0; c < channels; ++c)
            if (told[c] && (told[c]->low != sums[c].low || told[c]->high != sums[c].high))
                told[c].reset();
    }
    return told;
}

/// The sums of every row of a call; of no key, none.
std::vector<SumsOfRow> sums_of_rows(const Specification& s,
                                    const std::vector<oracle::RowDetail>& rows,
                                    const Roundings& roundings) {
    const Problem& p = s.problem;
    std::vector<SumsOfRow> sums(rows.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (!std::isfinite(rows[row].max)) continue;
        const auto flat = static_cast<std::int64_t>(row);
        const std::int64_t b = flat / p.len_q / p.heads_q, i = flat % p.len_q;
        const RowOfKeys of{s, rows[row], span_of(s, b, i), b,
                           flat / p.len_q % p.heads_q / group_size(p)};
        sums[row] = sums_of_splits(of, static_cast<std::size_t>(value_dim(p)), roundings);
    }
    return sums;
}

// A format has several names in one call: the sums are computed once for all of them.
std::shared_ptr<const std::vector<SumsOfRow>> kept_sums(const Specification& s,
                                                        const Roundings& roundings) {
    struct Kept {
        std::shared_ptr<const std::vector<oracle::RowDetail>> rows;  // of these very inputs
        NumberFormat weights;
        Roundings roundings;
        std::shared_ptr<const std::vector<SumsOfRow>> sums;
    };
    constexpr std::size_t most = 4096;  // of small calls
    thread_local std::list<Kept> kept;
    const auto rows = rows_of(s);
    const auto found = std::ranges::find_if(kept, [&](const Kept& k) {
        return k.rows == rows && k.weights == s.numerics.weights && k.roundings == roundings;
    });
    if (found != kept.end()) return found->sums;
    auto sums = std::make_shared<const std::vector<SumsOfRow>>(sums_of_rows(s, *rows, roundings));
    kept.push_front({rows, s.numerics.weights, roundings, sums});
    if (kept.size() > most) kept.pop_back();
    return sums;
}

// The quotient is known as well as the truth's own sum of weights: the slack of its log-sum-exp.
std::optional<bound::Expected> rounded_sums_of_values(const Specification& s,
                                                      const bound::Expected& truth, RoundsTo narrow,
                                                      std::int64_t tile, Rounded what) {
    const Problem& p = s.problem;
    const std::optional<Precision> format = format_in(narrow, p);
    if (p.format_q == Precision::f64 || truth.lse.empty() || !format) return std::nullopt;
    const Roundings roundings{tile, what, *format};
    bound::Expected out = truth;
    bool any = false;
    const auto all = kept_sums(s, roundings);
    const auto dim = static_cast<std::size_t>(value_dim(p));
    for (std::size_t row = 0; row < all->size(); ++row) {
        const SumsOfRow& sums = (*all)[row];
        const double off = truth.lse[row].bound + truth.lse[row].error + 0x1p-22;
        for (std::size_t c = 0; c < dim && truth.row_empty[row] == 0 && !sums.empty(); ++c) {
            bound::ExpectedElement& o = out.output[row * dim + c];
            if (!std::isfinite(o.value)) continue;
            any = true;
            std::optional<SumRange> sum = sums[c];
            if (sum) sum->widen(off * sum->size());
            o = sum && sum->finite() ? bound::ExpectedElement{(sum->low + sum->high) / 2, 0,
                                                              (sum->high - sum->low) / 2}
                                     : bound::ExpectedElement{0, 0, infinite};
        }
    }
    return any ? std::optional(std::move(out)) : std::nullopt;
}

Deviation sum_of_values_rounded(RoundsTo narrow, std::int64_t tile, Rounded what) {
    const std::string place = tile == whole ? "once, before it is divided by that of the weights"
                              : tile == 1   ? "key by key"
                                            : fmt::format("after each tile of {} keys", tile);
    const char* ids[] = {"", "_rescaled", "_products"};
    const char* also[] = {"", " and where it is rescaled",
                          " and where it is rescaled, the products too"};
    const auto n = static_cast<std::size_t>(what);
    return as_form_of(
        "value_sum_rounded",
        of_parts(formula_deviation(
            fmt::format("value_sum_rounded_{}_{}{}", id_of(narrow),
                        tile == whole ? "once" : std::to_string(tile), ids[n]),
            fmt::format("a sum of values kept in {}, rounded {}{}", words_of(narrow), place,
                        also[n]),
            [narrow, tile, what](const Specification& s, const bound::Expected& truth) {
                return rounded_sums_of_values(s, truth, narrow, tile, what);
            })));
}

}  // namespace

std::vector<Deviation> sums_of_values_rounded() {
    std::vector<Deviation> list;
    for (const RoundsTo narrow : narrow_or_own)
        list.push_back(sum_of_values_rounded(narrow, whole, Rounded::sum));
    for (const Rounded what : {Rounded::sum, Rounded::rescaled, Rounded::products})
        for (const std::int64_t tile : {1, 16, 32, 64, 128})
            for (const RoundsTo narrow : narrow_or_own)
                list.push_back(sum_of_values_rounded(narrow, tile, what));
    return list;
}

}  // namespace attest::diagnosis
