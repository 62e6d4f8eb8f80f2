// A running maximum that starts too high, that is taken of too much, or is not subtracted.

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

// The same in a kernel that feeds its weights to the second product in f16: exp(S - start) of
// scores a few below it has lost bits there, or all of them. The sum is of the weights as they
// were, where nothing else is declared.
std::optional<WeightChange> weights_below_start(double start, const Specification& s,
                                                const oracle::RowDetail& row) {
    WeightChange change{std::vector<double>(row.scores.size()), {}};
    if (s.numerics.sum_weights == SumWeights::unrounded) change.denominator = 0;
    if (row.max >= start) return WeightChange{};
    for (std::size_t j = 0; j < row.scores.size(); ++j) {
        if (!(row.weights[j] > 0)) continue;
        const double below = row.scores[j] - start, w = std::exp(below);
        const double size = w * (4 + std::abs(below) + std::abs(row.scores[j]));
        const std::optional<double> r = rounded_surely(w, size, Precision::f16);
        if (!r) return std::nullopt;
        change.numerator[j] = *r > 0 ? std::log(*r) - below : -infinite;
    }
    return change;
}

bool feeds_f16(const Specification& s) {
    return resolved(s.numerics.weights, s.problem.format_kv) == Precision::f16;
}

// Weights that are all 0 in f16, below a sum in f32 that is not, leave an output of 0.
void clear_lost_rows(double start, const Specification& s, bound::Expected& out) {
    constexpr double lost = -18;  // exp(-18) is less than half of 2^-24
    const auto kept = rows_of(s);
    const std::vector<oracle::RowDetail>& rows = *kept;
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t n = 0; n < out.output.size(); ++n)
        if (out.row_empty[n / dim] == 0 && rows[n / dim].max - start < lost)
            out.output[n] = bound::ExpectedElement{};
}

Deviation starting_maximum_f16(double start) {
    const Deviation rounded = weight_deviation(
        "", "", [start](const Specification& s, const oracle::RowDetail& row, KeyExtent) {
            return weights_below_start(start, s, row);
        });
    return formula_deviation(
        "maximum_finite_f16",
        "a running maximum that starts at some number, not at -inf: where all scores are below it, "
        "weights lose their bits in f16, and where they are far below it the output is NaN",
        [start, rounded](const Specification& s,
                         const bound::Expected& truth) -> std::optional<bound::Expected> {
            const Deviation f32 = starting_maximum(start, false);
            const bool f16 = feeds_f16(s) && !s.problem.sink;
            std::optional<bound::Expected> few = f16 ? rounded.formula(s, truth) : std::nullopt;
            if (few && s.numerics.sum_weights == SumWeights::unrounded)
                clear_lost_rows(start, s, *few);
            std::optional<bound::Expected> all = f32.formula(s, few ? *few : truth);
            return all ? all : few;
        });
}

// Of scores from one key to before another; comparisons drop what is not a number.
double largest_of(const std::vector<double>& scores, std::int64_t from, std::int64_t to) {
    double most = -infinite;
    for (std::int64_t j = from; j < to; ++j)
        most = std::fmax(most, scores[static_cast<std::size_t>(j)]);
    return most;
}

// The largest score of all keys of the sequence or document, with nothing hidden; with a tile, of
// all keys in the tiles that a document has a key in, on the axis that packs them.
std::vector<double> maxima_of_all(std::int64_t tile, const Specification& s, std::size_t rows) {
    Rules rules;
    rules.mask_tensor = false;
    rules.documents = tile == 0;
    const bool packed = tile > 0 && !s.problem.mask.documents_kv.empty();
    const auto all = rows_of(with_rules(s, rules));
    const std::int64_t keys = s.problem.len_kv;
    std::vector<double> maxima;
    for (std::size_t n = 0; n < rows; ++n) {
        KeyExtent seen{0, keys};
        if (packed) {
            const KeyExtent own = span_of(s, 0, static_cast<std::int64_t>(n) % s.problem.len_q);
            seen = {own.begin / tile * tile, std::min(keys, (own.end + tile - 1) / tile * tile)};
            if (own.begin == own.end) seen = {};
        }
        maxima.push_back(largest_of((*all)[n].scores, seen.begin, seen.end));
    }
    return maxima;
}

Deviation maximum_of_tiles(std::int64_t tile, bool guarded) {
    return underflowing(
        fmt::format("maximum_of_hidden_tiles_{}", tile),
        fmt::format(
            "a maximum over all keys of its tiles of {} too, hidden ones and those of other "
            "documents: where one of them stands far above all that are seen, every weight "
            "underflows and",
            tile),
        guarded, [tile](double quotient, const Specification& s, const bound::Expected& truth) {
            return maximum_from(std::bind_front(maxima_of_all, tile), quotient, s, truth);
        });
}

Deviation maximum_of_hidden(bool guarded) {
    return underflowing(
        "maximum_of_hidden",
        "a maximum over hidden keys too: where one of them stands far above all that are seen, "
        "every weight underflows and",
        guarded, [](double quotient, const Specification& s, const bound::Expected& truth) {
            return maximum_from(std::bind_front(maxima_of_all, 0), quotient, s, truth);
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
        const Deviation hidden = maximum_of_hidden(guarded);
        list.push_back(hidden);
        for (const std::int64_t tile : {16, 32, 64, 128})
            list.push_back(as_form_of(hidden.id, maximum_of_tiles(tile, guarded)));
        std::ranges::move(maximum_not_subtracted(guarded), std::back_inserter(list));
        std::ranges::move(merged_without_maximum(guarded), std::back_inserter(list));
        for (const std::int64_t lanes : {4, 8, 16, 32})
            std::ranges::move(maximum_without_last_lane(lanes, guarded), std::back_inserter(list));
        for (const std::int64_t step : {2, 4, 8, 16, 32, 64})
            std::ranges::move(maximum_without_rest(step, guarded), std::back_inserter(list));
    }
    return list;
}

}  // namespace attest::diagnosis
