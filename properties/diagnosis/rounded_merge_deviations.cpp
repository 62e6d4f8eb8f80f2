// Splits whose parts are weighed, where they are merged, by numbers of a narrower format.

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

/// What a split is weighed by: exp of its log-sum-exp, or of its largest score, less the largest of
/// all.
enum class WeighedBy : std::uint8_t { lse, maximum };

double height_of(const oracle::RowDetail& row, KeyExtent split, WeighedBy by) {
    if (by == WeighedBy::lse) return lse_between(row, split).value_or(-infinite);
    double most = -infinite;
    for (std::int64_t j = split.begin; j < split.end; ++j)
        most = std::max(most, row.scores[static_cast<std::size_t>(j)]);
    return most;
}

// The sum they are divided by is that of these numbers, too, or of those before the rounding.
Deviation merge_rounded(WeighedBy by, bool in_sum, RoundsTo narrow) {
    const bool lse = by == WeighedBy::lse;
    return rounded_step(
        std::string(lse ? "merge_rounded_" : "merge_maxima_rounded_") + id_of(narrow) +
            (in_sum ? "_and_sum" : ""),
        std::string("splits merged by exp of their ") + (lse ? "log-sum-exp" : "maximum") +
            " less the largest, rounded to " + words_of(narrow) +
            (in_sum ? " in both sums" : ", their sum not"),
        narrow,
        [by, in_sum](Precision format, const Specification& s, const oracle::RowDetail& row,
                     KeyExtent span) -> std::optional<WeightChange> {
            if (s.problem.splits < 2) return WeightChange{};
            if (s.problem.sink) return std::nullopt;  // it may be one of the parts
            const std::vector<KeyExtent> splits = split_extents(s.problem, span);
            std::vector<double> heights;
            double most = -infinite;
            for (const KeyExtent& split : splits) {
                heights.push_back(height_of(row, split, by));
                most = std::max(most, heights.back());
            }
            if (!std::isfinite(most)) return WeightChange{};
            WeightChange change{std::vector<double>(row.scores.size()),
                                in_sum ? std::nullopt : std::optional(0.0)};
            for (std::size_t n = 0; n < splits.size(); ++n) {
                const double weight = std::exp(heights[n] - most);
                const auto rounded = rounded_surely(weight, weight, format);
                if (!rounded) return std::nullopt;
                if (weight == 0) continue;
                for (std::int64_t j = splits[n].begin; j < splits[n].end; ++j)
                    change.numerator[static_cast<std::size_t>(j)] = std::log(*rounded / weight);
            }
            return change;
        });
}

}  // namespace

std::vector<Deviation> merges_rounded() {
    std::vector<Deviation> list;
    for (const RoundsTo narrow : narrow_or_own)
        for (const WeighedBy by : {WeighedBy::lse, WeighedBy::maximum})
            for (const bool in_sum : {false, true})
                list.push_back(merge_rounded(by, in_sum, narrow));
    return list;
}

}  // namespace attest::diagnosis
