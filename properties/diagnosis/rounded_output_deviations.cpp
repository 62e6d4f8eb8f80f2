// The sum over values kept in a narrower format than declared.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// P v_j of a weight by the running maximum, as the declared format rounds it, and what a kernel's
// own may differ by: a few roundings to f32 of the score and of exp.
SumRange product(const RowOfKeys& of, std::int64_t j, double most, double v) {
    const auto n = static_cast<std::size_t>(j);
    const double below = of.row.scores[n] - most, w = std::exp(below);
    const double off = 0x1p-21 * w * (4 + std::abs(below) + std::abs(most));
    SumRange p{w - off, w + off};
    if (const auto format = format_of_weights(of.s)) p.round(*format);
    SumRange out{std::min(p.low * v, p.high * v), std::max(p.low * v, p.high * v)};
    out.widen(0x1p-23 * out.size());
    return out;
}

/// How often a sum is rounded, and to what.
struct Roundings {
    std::int64_t tile;
    Rounded what;
    Precision format;
};

// sum_j P_j v_j of one channel, by tiles of keys, rounded after each.
SumRange sum_of_tiles(const RowOfKeys& of, std::int64_t c, const Roundings& roundings) {
    const auto [tile, what, format] = roundings;
    double most = -infinite;
    SumRange sum;
    const Tensor& values = of.s.inputs[Role::v];
    for (std::int64_t from = of.span.begin; from < of.span.end; from += tile) {
        const std::int64_t to = std::min(from + tile, of.span.end);
        const double before = most;
        const auto seen = [&](std::int64_t j) {
            return of.row.weights[static_cast<std::size_t>(j)] > 0;
        };
        for (std::int64_t j = from; j < to; ++j)
            if (seen(j)) most = std::max(most, of.row.scores[static_cast<std::size_t>(j)]);
        if (!std::isfinite(most)) continue;
        if (before != most && std::isfinite(before)) {
            sum.scale(std::exp(before - most));
            sum.widen(0x1p-21 * (4 + std::abs(before - most) + std::abs(most)) * sum.size());
            if (what != Rounded::sum) sum.round(format);
        }
        SumRange own;
        double size = what == Rounded::products ? 0 : sum.size();
        for (std::int64_t j = from; j < to; ++j) {
            if (!seen(j)) continue;
            const SumRange p = product(of, j, most, values.at(of.b, of.head_kv, j, c));
            own.low += p.low, own.high += p.high;
            size += p.size();
        }
        own.widen(0x1p-24 * static_cast<double>(to - from) * size);
        if (what == Rounded::products) own.round(format);
        sum.low += own.low, sum.high += own.high;
        sum.round(format);
    }
    // By the maximum of the keys; O is this times exp(most - LSE).
    sum.scale(std::exp(most - of.row.lse));
    return sum;
}

// The quotient is known as well as the truth's own sum of weights: the slack of its log-sum-exp.
std::optional<bound::Expected> rounded_sums_of_values(const Specification& s,
                                                      const bound::Expected& truth, RoundsTo narrow,
                                                      std::int64_t tile, Rounded what) {
    const Problem& p = s.problem;
    const std::optional<Precision> format = format_in(narrow, p);
    if (p.splits > 1 || p.format_q == Precision::f64 || truth.lse.empty() || !format)
        return std::nullopt;
    const Roundings roundings{tile, what, *format};
    bound::Expected out = truth;
    bool any = false;
    const auto rows = rows_of(s);
    const std::int64_t dim = value_dim(p);
    for (std::int64_t n = 0; n < static_cast<std::int64_t>(out.output.size()); ++n) {
        const std::int64_t flat = n / dim, b = flat / p.len_q / p.heads_q, i = flat % p.len_q;
        const auto row = static_cast<std::size_t>(flat);
        bound::ExpectedElement& o = out.output[static_cast<std::size_t>(n)];
        if (truth.row_empty[row] != 0 || !std::isfinite(o.value)) continue;
        const RowOfKeys of{s, (*rows)[row], span_of(s, b, i), b,
                           flat / p.len_q % p.heads_q / group_size(p)};
        SumRange sum = sum_of_tiles(of, n % dim, roundings);
        const double off = truth.lse[row].bound + truth.lse[row].error + 0x1p-22;
        sum.widen(off * sum.size());
        any = true;
        o = sum.finite()
                ? bound::ExpectedElement{(sum.low + sum.high) / 2, 0, (sum.high - sum.low) / 2}
                : bound::ExpectedElement{0, 0, infinite};
    }
    return any ? std::optional(std::move(out)) : std::nullopt;
}

Deviation sum_of_values_rounded(RoundsTo narrow, std::int64_t tile, Rounded what) {
    const std::string place =
        tile == 1 ? "key by key" : fmt::format("after each tile of {} keys", tile);
    const char* ids[] = {"", "_rescaled", "_products"};
    const char* also[] = {"", " and where it is rescaled",
                          " and where it is rescaled, the products too"};
    const auto n = static_cast<std::size_t>(what);
    return formula_deviation(
        fmt::format("value_sum_rounded_{}_{}{}", id_of(narrow), tile, ids[n]),
        fmt::format("a sum of values kept in {}, rounded {}{}", words_of(narrow), place, also[n]),
        [narrow, tile, what](const Specification& s, const bound::Expected& truth) {
            return rounded_sums_of_values(s, truth, narrow, tile, what);
        });
}

}  // namespace

std::vector<Deviation> sums_of_values_rounded() {
    std::vector<Deviation> list;
    for (const Rounded what : {Rounded::sum, Rounded::rescaled, Rounded::products})
        for (const RoundsTo narrow : narrow_or_own)
            for (const std::int64_t tile : {1, 16, 32, 64, 128})
                list.push_back(sum_of_values_rounded(narrow, tile, what));
    return list;
}

}  // namespace attest::diagnosis
