// The log-sum-exp taken wrongly while the output is right: another base, a part of it alone.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

// L = m + log l with |L' - L| <= e. What a kernel computes from the same m and l differs by at most
// e plus the rounding of m in the accumulate format, which the bound of L covers as well.
using LseOf = std::function<double(const Specification&, const oracle::RowDetail&, double right)>;

using LseOfRow = std::function<bound::ExpectedElement(
    const oracle::RowDetail&, std::int64_t b, std::int64_t i, bound::ExpectedElement right)>;

/// The log-sum-exp changed in every row that sees a key.
std::optional<bound::Expected> with_lse(const Specification& s, const bound::Expected& truth,
                                        const LseOfRow& lse_of) {
    if (truth.lse.empty()) return std::nullopt;
    bound::Expected out;
    out.lse = truth.lse;
    const auto rows = rows_of(s);
    std::size_t n = 0;
    for (std::int64_t b = 0; b < s.problem.batch; ++b)
        for (std::int64_t h = 0; h < s.problem.heads_q; ++h)
            for (std::int64_t i = 0; i < s.problem.len_q; ++i, ++n) {
                if (n < truth.row_empty.size() && truth.row_empty[n] != 0) continue;
                if (bound::ExpectedElement& e = out.lse[n]; std::isfinite(e.value))
                    e = lse_of((*rows)[n], b, i, e);
            }
    return out;
}

Deviation lse_deviation(std::string id, std::string says, LseOf value_of) {
    return {.id = std::move(id),
            .says = std::move(says),
            .formula = [value_of = std::move(value_of)](const Specification& s,
                                                        const bound::Expected& truth) {
                return with_lse(s, truth,
                                [&](const oracle::RowDetail& row, std::int64_t, std::int64_t,
                                    bound::ExpectedElement e) {
                                    e.value = value_of(s, row, e.value);
                                    return e;
                                });
            }};
}

/// A row past its sequence's length is no query.
bool is_query(const Problem& p, std::size_t row) {
    const auto flat = static_cast<std::int64_t>(row);
    return flat % p.len_q < length_of(p.mask.lens_q, p.len_q, flat / (p.len_q * p.heads_q));
}

/// Of the rows without a key: queries that see none, rows that are no query, or both.
enum class EmptyRows : std::uint8_t { queries, padding, both };

Deviation empty_lse(std::string id, std::string says, double value, EmptyRows which) {
    return {
        .id = std::move(id),
        .says = std::move(says),
        .formula = [value, which](const Specification& s,
                                  const bound::Expected& truth) -> std::optional<bound::Expected> {
            bound::Expected out;
            out.lse = truth.lse;
            bool any = false;
            for (std::size_t n = 0; n < out.lse.size() && n < truth.row_empty.size(); ++n) {
                const auto own = is_query(s.problem, n) ? EmptyRows::queries : EmptyRows::padding;
                if (truth.row_empty[n] == 0 || (which != EmptyRows::both && which != own)) continue;
                out.lse[n] = {value, 0, 0};
                any = true;
            }
            if (!any) return std::nullopt;
            return out;
        }};
}

Deviation infinite_without_keys() {
    Deviation deviation =
        empty_lse("lse_empty_infinite", "a log-sum-exp of +inf where a query sees no key", infinite,
                  EmptyRows::queries);
    deviation.declares = [](const Specification&) -> std::string {
        return "-inf where a query sees no key; by design? declare dialect: empty_lse inf";
    };
    return deviation;
}

// exp(sink - m) of an f32 with m of the keys alone: beyond log(FLT_MAX) = 88.72 it is infinite, and
// so is the sum that the output is divided by; next to that nothing is claimed. Without a key m is
// -inf: the log-sum-exp is the sum of that and inf, unless that is guarded against.
std::optional<bound::Expected> sink_outside_maximum(const Specification& s,
                                                    const bound::Expected& truth, bool guarded) {
    if (!s.problem.sink || s.problem.format_q == Precision::f64) return std::nullopt;
    bool any = false;
    bound::Expected out = truth;
    const auto rows = rows_of(s);
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t row = 0; row < rows->size(); ++row) {
        double most = -infinite;
        for (const double score : (*rows)[row].scores) most = std::max(most, score);
        const auto flat = static_cast<std::int64_t>(row);
        const double above =
            s.inputs[Role::sinks].get(flat / s.problem.len_q % s.problem.heads_q) - most;
        if (!(above > 88)) continue;
        const bool keys = std::isfinite(most), known = above > 89 && (keys || !guarded);
        any = any || known;
        for (std::size_t n = row * dim; n < (row + 1) * dim; ++n)
            out.output[n].bound =
                known ? out.output[n].bound + std::abs(out.output[n].value) : infinite;
        if (row < out.lse.size())
            out.lse[row] = known ? bound::ExpectedElement{keys ? infinite : std::nan(""), 0, 0}
                                 : bound::ExpectedElement{0, 0, infinite};
    }
    if (!any) return std::nullopt;
    return out;
}

double in_base(const Specification& s, double natural) {
    return s.dialect.lse_base == LseBase::two ? natural * std::numbers::log2e : natural;
}

// The logarithm of a sum of the keys' weights alone, taken below the maximum of keys and sink: far
// below that it has lost its bits, or is of 0. Of no key it is -inf.
std::optional<bound::Expected> lse_of_keys(const Specification& s, const bound::Expected& truth) {
    constexpr double far = 80;
    if (!s.problem.sink || truth.lse.empty()) return std::nullopt;
    const Specification keys = without_sink(s);
    bound::Expected out;
    out.lse = oracle::attend(keys.problem, s.dialect, s.numerics, keys.inputs).lse;
    for (std::size_t row = 0; row < out.lse.size(); ++row) {
        bound::ExpectedElement& own = out.lse[row];
        if (!std::isfinite(own.value)) continue;
        own.bound += truth.lse[row].bound;
        if (truth.lse[row].value - own.value > far) own.bound = infinite;
    }
    return out;
}

// Each split has as many whole tiles, from the first key of the row.
std::vector<double> lse_of_each_split(const Problem& p, const oracle::RowDetail& row,
                                      KeyExtent span, std::int64_t tile) {
    const std::int64_t tiles = (span.end - span.begin + tile - 1) / tile;
    const std::int64_t keys = tile * ((tiles + p.splits - 1) / p.splits);
    std::vector<double> all;
    for (std::int64_t from = span.begin; from < span.end; from += keys)
        if (const auto lse = lse_between(row, {from, std::min(from + keys, span.end)}))
            all.push_back(*lse);
    return all;
}

enum class OneSplit : std::uint8_t { last, first, largest };
constexpr const char* names_of_split[] = {"last", "first", "largest"};

double lse_of(const std::vector<double>& all, OneSplit which) {
    if (which == OneSplit::largest) return *std::ranges::max_element(all);
    return which == OneSplit::last ? all.back() : all.front();
}

// As far off as the row's own, and by two roundings of a number that may be larger. With a sink
// nothing is claimed: it may be in it or not.
std::optional<bound::Expected> lse_of_one_split(const Specification& s,
                                                const bound::Expected& truth, std::int64_t tile,
                                                OneSplit which) {
    if (s.problem.splits < 2) return std::nullopt;
    return with_lse(s, truth,
                    [&](const oracle::RowDetail& row, std::int64_t b, std::int64_t i,
                        bound::ExpectedElement e) {
                        const std::vector<double> all =
                            lse_of_each_split(s.problem, row, span_of(s, b, i), tile);
                        if (s.problem.sink || all.empty())
                            return bound::ExpectedElement{0, 0, infinite};
                        e.value = in_base(s, lse_of(all, which));
                        e.bound += 2 * traits(Precision::f32).unit_roundoff * std::abs(e.value);
                        return e;
                    });
}

}  // namespace

std::vector<Deviation> lse_of_splits() {
    std::vector<Deviation> list = lse_misscaled();
    for (const std::int64_t tile : {1, 16, 32, 64, 128})
        for (const OneSplit which : {OneSplit::last, OneSplit::first, OneSplit::largest}) {
            const char* word = names_of_split[static_cast<std::size_t>(which)];
            list.push_back(
                {.id = fmt::format("lse_of_{}_split_{}", word, tile),
                 .says = fmt::format("the {} alone{}, of those in which the query sees a key",
                                     which == OneSplit::largest
                                         ? "largest log-sum-exp of a split"
                                         : fmt::format("log-sum-exp of the {} split", word),
                                     tile == 1 ? "" : fmt::format(", of whole tiles of {}", tile)),
                 .formula = [tile, which](const Specification& s, const bound::Expected& truth) {
                     return lse_of_one_split(s, truth, tile, which);
                 }});
        }
    return list;
}

std::vector<Deviation> lse_deviations() {
    return {
        {.id = "lse_other_base",
         .says = "a log-sum-exp of the other base",
         .respecify = [](const Specification& s) -> std::optional<Specification> {
             Specification out = s;
             out.dialect.lse_base = s.dialect.lse_base == LseBase::e ? LseBase::two : LseBase::e;
             return out;
         },
         .declares = [](const Specification& s) -> std::string {
             return s.dialect.lse_base == LseBase::e
                        ? "e: the natural logarithm; by design? declare dialect: lse_base 2"
                        : "2: the logarithm of base 2; by design? declare dialect: lse_base e";
         }},
        lse_deviation("lse_without_maximum", "a log-sum-exp without the row's maximum",
                      [](const Specification& s, const oracle::RowDetail& row, double) {
                          return in_base(s, std::log(row.sum));
                      }),
        lse_deviation("lse_maximum_alone", "the row's maximum where its log-sum-exp is meant",
                      [](const Specification& s, const oracle::RowDetail& row, double) {
                          return in_base(s, row.max);
                      }),
        lse_deviation("lse_maximum_scaled_twice",
                      "a log-sum-exp whose maximum is multiplied by the scale once more",
                      [](const Specification& s, const oracle::RowDetail& row, double) {
                          return in_base(s,
                                         row.max * effective_scale(s.problem) + std::log(row.sum));
                      }),
        lse_deviation("lse_sum_other_base", "a log-sum-exp whose sum is of the other base",
                      [](const Specification& s, const oracle::RowDetail& row, double) {
                          return s.dialect.lse_base == LseBase::e
                                     ? row.max + std::log2(row.sum)
                                     : row.max * std::numbers::log2e + std::log(row.sum);
                      }),
        lse_deviation("lse_without_sink", "a log-sum-exp that leaves out the sink",
                      [](const Specification& s, const oracle::RowDetail& row, double right) {
                          if (!s.problem.sink) return right;
                          double keys = 0;
                          for (const double share : row.shares) keys += share;
                          return right + in_base(s, std::log(keys));
                      }),
        as_form_of("lse_without_sink",
                   {.id = "lse_of_keys",
                    .says = "a log-sum-exp that leaves out the sink, and is -inf where a query "
                            "sees no key",
                    .formula = lse_of_keys}),
        lse_deviation(
            "lse_negated", "the negated log-sum-exp",
            [](const Specification&, const oracle::RowDetail&, double right) { return -right; }),
        lse_deviation("lse_zero", "a log-sum-exp of 0 everywhere",
                      [](const Specification&, const oracle::RowDetail&, double) { return 0.0; }),
        {.id = "sink_outside_maximum",
         .says = "a sink left out of the running maximum: far above all scores its exponential is "
                 "infinite",
         .formula = [](const Specification& s,
                       const bound::Expected& t) { return sink_outside_maximum(s, t, false); }},
        {.id = "sink_outside_maximum_guarded",
         .says = "a sink left out of the running maximum, where there are keys: far above all "
                 "scores its exponential is infinite",
         .formula = [](const Specification& s,
                       const bound::Expected& t) { return sink_outside_maximum(s, t, true); }},
        empty_lse("lse_empty_zero", "a log-sum-exp of 0 where a query sees no key", 0.0,
                  EmptyRows::queries),
        empty_lse("lse_padding_zero", "a log-sum-exp of 0 past the query lengths", 0.0,
                  EmptyRows::padding),
        empty_lse("lse_empty_zero_padding",
                  "a log-sum-exp of 0 where a query sees no key, and past the query lengths", 0.0,
                  EmptyRows::both),
        infinite_without_keys(),
        empty_lse("lse_padding_infinite", "a log-sum-exp of +inf past the query lengths", infinite,
                  EmptyRows::padding),
        empty_lse("lse_empty_infinite_padding",
                  "a log-sum-exp of +inf where a query sees no key, and past the query lengths",
                  infinite, EmptyRows::both),
    };
}

}  // namespace attest::diagnosis
