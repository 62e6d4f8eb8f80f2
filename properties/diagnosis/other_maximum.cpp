#include "properties/diagnosis/other_maximum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

/// Where exp of a number ends: below it is subnormal, or 0 whatever the arithmetic, as half the
/// least subnormal is exp(-103.97) or exp(-745.13); above, the sum of some hundred may be infinite,
/// one may be, and is.
struct ExpRange {
    double subnormal, zero, sums, largest, infinite;
};
ExpRange exp_range(const Problem& p) {
    if (p.format_q == Precision::f64) return {708, 746, 700, 709, 710};
    return {87, 104, 80, 88, 89};
}

}  // namespace

// exp(S - m) with m at its start where every S is below that. Between where exp becomes subnormal
// and where it is 0 nothing is claimed, and of such a row's log-sum-exp never. A denominator of 0
// leaves NaN, or 0 where it is guarded.
std::optional<bound::Expected> maximum_from(const StartOf& start_of, double underflow,
                                            const Specification& s, const bound::Expected& truth) {
    const ExpRange range = exp_range(s.problem);
    bool any = false;
    bound::Expected out = truth;
    const auto kept = rows_of(s);
    const std::vector<oracle::RowDetail>& rows = *kept;
    const std::vector<double> starts = start_of(s, rows.size());
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const double below = starts[row] - rows[row].max;
        // Of a row of nothing but NaN there is no largest score.
        if (truth.row_empty[row] != 0 || !(below > range.subnormal) ||
            !std::isfinite(rows[row].max))
            continue;
        // A sink is added behind the keys: what is left of the sum is its own weight.
        const bool sink = s.problem.sink, known = below > range.zero && !sink;
        any = any || known;
        for (std::size_t n = row * dim; n < (row + 1) * dim; ++n)
            out.output[n] = known ? bound::ExpectedElement{underflow, 0, 0}
                                  : bound::ExpectedElement{0, 0, infinite};
        if (row < out.lse.size()) out.lse[row] = {0, 0, infinite};
    }
    if (!any) return std::nullopt;
    return out;
}

Deviation underflowing(std::string id, std::string says, bool guarded, WhereZero expected) {
    if (guarded) id += "_guarded";
    return formula_deviation(
        std::move(id), says + " the output is " + (guarded ? "0" : "NaN"),
        [quotient = guarded ? 0.0 : std::nan(""), expected = std::move(expected)](
            const Specification& s, const bound::Expected& truth) {
            return expected(quotient, s, truth);
        });
}

namespace {

/// Where the sum of weights is finite: what is said of a sum of values that may not be.
enum class LargeValues : std::uint8_t { open, infinite };

// exp(S - m) with another m than the row's maximum: more than log(FLT_MAX) = 88.72 above it, or
// that of f64, the sums are infinite and their quotient is NaN; where all are far below it is 0 as
// above.
std::optional<bound::Expected> subtracted(const StartOf& other, LargeValues values,
                                          double underflow, const Specification& s,
                                          const bound::Expected& truth) {
    if (s.problem.sink) return std::nullopt;
    const ExpRange range = exp_range(s.problem);
    std::optional<bound::Expected> low = maximum_from(other, underflow, s, truth);
    bool any = low.has_value();
    bound::Expected out = low ? std::move(*low) : truth;
    const auto kept = rows_of(s);
    const std::vector<oracle::RowDetail>& rows = *kept;
    const std::vector<double> maxima = other(s, rows.size());
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const double above = rows[row].max - maxima[row];
        if (!(above > range.sums)) continue;
        for (std::size_t n = row * dim; n < (row + 1) * dim; ++n) {
            const double o = truth.output[n].value;
            const double sum = rows[row].lse - maxima[row] + std::log(std::abs(o));
            const bool sum_of_values =
                values == LargeValues::infinite && above < range.largest && sum > range.infinite;
            if (above > range.infinite)
                out.output[n] = {std::nan(""), 0, 0};
            else if (sum_of_values)
                out.output[n] = {std::copysign(infinite, o), 0, 0};
            else
                out.output[n] = {0, 0, infinite};
            any = any || above > range.infinite || sum_of_values;
        }
        if (row < out.lse.size()) out.lse[row] = {0, 0, infinite};
    }
    if (!any) return std::nullopt;
    return out;
}

std::vector<double> zeros(const Specification&, std::size_t rows) {
    return std::vector<double>(rows, 0.0);
}

/// The scores of a row's keys, and those of all that no rule but the mask tensor hides.
using RowPairs = std::pair<std::shared_ptr<const std::vector<oracle::RowDetail>>,
                           std::shared_ptr<const std::vector<oracle::RowDetail>>>;
RowPairs rows_and_ranges(const Specification& s) {
    auto rows = rows_of(s);
    if (s.problem.mask.tensor.kind == MaskKind::none) return {rows, rows};
    Rules untold = rules_of(s);
    untold.mask_tensor = false;
    return {rows, rows_of(with_rules(s, untold))};
}

/// Of the keys from the first to the last that no rule but the mask tensor hides, in steps of
/// several; 0 where none of them is seen.
StartOf maximum_of_steps(std::int64_t step) {
    return [step](const Specification& s, std::size_t) {
        std::vector<double> maxima;
        const auto [rows, ranges] = rows_and_ranges(s);
        for (std::size_t n = 0; n < rows->size(); ++n) {
            const std::vector<double>& range = (*ranges)[n].scores;
            const auto seen = [](double score) { return score > -infinite; };
            const auto first = std::ranges::find_if(range, seen);
            const auto last =
                std::find_if(range.rbegin(), std::make_reverse_iterator(first), seen).base();
            const auto begin = (*rows)[n].scores.begin() + (first - range.begin());
            const double most =
                std::accumulate(begin, begin + (last - first) / step * step, -infinite,
                                [](double x, double y) { return std::max(x, y); });
            maxima.push_back(std::isfinite(most) ? most : 0);
        }
        return maxima;
    };
}

/// Of all keys but every n-th of the sequence's or document's: lanes of which the last is lost.
StartOf maximum_without_last_of(std::int64_t lanes) {
    return [lanes](const Specification& s, std::size_t) {
        std::vector<double> maxima;
        const auto rows = rows_of(s);
        const Problem& p = s.problem;
        for (std::size_t n = 0; n < rows->size(); ++n) {
            const auto flat = static_cast<std::int64_t>(n);
            const KeyExtent span = span_of(s, flat / p.len_q / p.heads_q, flat % p.len_q);
            double most = -infinite;
            for (std::int64_t j = span.begin; j < span.end; ++j)
                if ((j - span.begin) % lanes != lanes - 1)
                    most = std::max(most, (*rows)[n].scores[static_cast<std::size_t>(j)]);
            maxima.push_back(std::isfinite(most) ? most : 0);
        }
        return maxima;
    };
}

// Parts of the keys weigh exp(L) by their log-sum-exps: the sum is infinite, or 0, where that of
// the row is, whatever its largest score.
std::vector<double> below_by_log_sums(const Specification& s, std::size_t) {
    std::vector<double> starts;
    const auto rows = rows_of(s);
    for (const oracle::RowDetail& row : *rows) starts.push_back(row.max - row.lse);
    return starts;
}

}  // namespace

std::vector<Deviation> subtracting(const std::string& id, const std::string& says, bool guarded,
                                   const StartOf& other) {
    const Deviation plain =
        underflowing(id, says, guarded, std::bind_front(subtracted, other, LargeValues::open));
    return {plain, as_form_of(plain.id, underflowing(id + "_values", says, guarded,
                                                     std::bind_front(subtracted, other,
                                                                     LargeValues::infinite)))};
}

std::vector<Deviation> maximum_not_subtracted(bool guarded) {
    return subtracting("maximum_not_subtracted",
                       "weights exp(S) without the maximum: of large scores they are infinite, "
                       "and where all are far below 0",
                       guarded, zeros);
}

std::vector<Deviation> maximum_without_rest(std::int64_t step, bool guarded) {
    return subtracting(
        fmt::format("maximum_without_rest_{}", step),
        fmt::format("a maximum without the last n mod {} keys: where one of these stands far above "
                    "all others, weights are infinite, and where no others are and all are small",
                    step),
        guarded, maximum_of_steps(step));
}

std::vector<Deviation> maximum_without_last_lane(std::int64_t lanes, bool guarded) {
    return subtracting(
        fmt::format("maximum_without_lane_{}", lanes),
        fmt::format("a maximum without the last of every {} keys: where one of these stands far "
                    "above all others, weights are infinite, and where no others are and all are "
                    "small",
                    lanes),
        guarded, maximum_without_last_of(lanes));
}

std::vector<Deviation> merged_without_maximum(bool guarded) {
    return subtracting("merged_without_maximum",
                       "parts of the keys merged by exp of their log-sum-exps without a maximum: "
                       "of large ones they are infinite, and where all are far below 0",
                       guarded, below_by_log_sums);
}

}  // namespace attest::diagnosis
