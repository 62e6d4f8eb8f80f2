// A running maximum that starts too high, or is not the largest of what a row sees.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/other_maximum.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

// NaN where a query sees no key, and no sink; its log-sum-exp is open.
std::optional<bound::Expected> empty_rows_nan(const Specification& s, bound::Expected out) {
    if (s.problem.sink) return std::nullopt;
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    bool any = false;
    for (std::size_t row = 0; row < out.row_empty.size(); ++row) {
        const auto flat = static_cast<std::int64_t>(row);
        const std::int64_t b = flat / (s.problem.heads_q * s.problem.len_q);
        const bool query =
            flat % s.problem.len_q < length_of(s.problem.mask.lens_q, s.problem.len_q, b);
        if (out.row_empty[row] == 0 || !query) continue;
        any = true;
        for (std::size_t n = row * dim; n < (row + 1) * dim; ++n)
            out.output[n] = {std::nan(""), 0, 0};
        if (row < out.lse.size()) out.lse[row] = {0, 0, infinite};
    }
    if (!any) return std::nullopt;
    return out;
}

// Scores far below it do not tell where it starts: it is not said.
Deviation starting_maximum(double start, bool guarded) {
    return underflowing(
        "maximum_finite",
        "a running maximum that starts at some number, not at -inf: where all scores are far below "
        "it, every weight underflows and",
        guarded, [start](double quotient, const Specification& s, const bound::Expected& truth) {
            const auto same = [start](const Specification&, std::size_t rows) {
                return std::vector<double>(rows, start);
            };
            return maximum_from(same, quotient, s, truth);
        });
}

// The same without a look at rows that see no key: their sum is 0 as well.
Deviation starting_maximum_and_empty(double start) {
    return formula_deviation(
        "maximum_finite_empty",
        "a running maximum that starts at some number, not at -inf: where all scores are far below "
        "it, or a query sees no key, the sum of weights is 0 and the output is NaN",
        [start](const Specification& s,
                const bound::Expected& truth) -> std::optional<bound::Expected> {
            const Deviation seen = starting_maximum(start, false);
            std::optional<bound::Expected> out = seen.formula(s, truth);
            std::optional<bound::Expected> empty = empty_rows_nan(s, out ? *out : truth);
            return empty ? empty : out;
        });
}

// The same in a kernel that feeds its weights to the second product in f16.
Deviation starting_maximum_f16(double start) {
    return formula_deviation(
        "maximum_finite_f16",
        "a running maximum that starts at some number, not at -inf: where all scores are below it, "
        "weights lose their bits in f16, and where they are far below it the output is NaN",
        [start](const Specification& s,
                const bound::Expected& truth) -> std::optional<bound::Expected> {
            const auto above = [start](const oracle::RowDetail& row) {
                return std::vector<double>(row.scores.size(), row.max < start ? start : -infinite);
            };
            const auto maxima_of = [above](const Specification& of) {
                KeyMaxima maxima;
                const auto rows = rows_of(of);
                std::ranges::transform(*rows, std::back_inserter(maxima), above);
                return maxima;
            };
            const auto few = weights_lost_in_f16(maxima_of, s, truth);
            const Deviation f32 = starting_maximum(start, false);
            std::optional<bound::Expected> all = f32.formula(s, few ? *few : truth);
            return all ? all : few;
        });
}

}  // namespace

std::vector<Deviation> maximum_deviations() {
    const Deviation plain = starting_maximum(0, false);
    return {plain, starting_maximum(0, true), as_form_of(plain.id, starting_maximum_and_empty(0)),
            // Weights in f16 lose their bits where those in f32 vanish.
            as_form_of(plain.id, starting_maximum_f16(0))};
}

std::vector<Deviation> starting_maxima() {
    std::vector<Deviation> list;
    for (const double start : {-10.0, -50.0, -100.0, -1e3, -1e4, -5e4, -65504.0, -1e5, -1e6})
        for (const bool guarded : {false, true}) list.push_back(starting_maximum(start, guarded));
    for (const bool guarded : {false, true}) {
        std::ranges::move(maximum_of_hidden(guarded), std::back_inserter(list));
        std::ranges::move(maximum_not_subtracted(guarded), std::back_inserter(list));
        std::ranges::move(merged_without_maximum(guarded), std::back_inserter(list));
        std::ranges::move(maximum_of_products(guarded), std::back_inserter(list));
        std::ranges::move(maximum_of_other_rows(guarded), std::back_inserter(list));
        for (const std::int64_t lanes : {4, 8, 16, 32})
            std::ranges::move(maximum_without_last_lane(lanes, guarded), std::back_inserter(list));
        for (const std::int64_t step : {2, 4, 8, 16, 32, 64})
            std::ranges::move(maximum_without_rest(step, guarded), std::back_inserter(list));
    }
    return list;
}

}  // namespace attest::diagnosis
