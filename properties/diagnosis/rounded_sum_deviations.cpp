// The sum of weights kept in a narrower format than declared.

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

// l of one split: each tile's weights are added up, then what was summed before is rescaled and the
// rounded sum kept. A maximum that is alone below others in f32 is no matter here: sums are of one
// sign. None where a rounding could go either way.
std::optional<double> sum_of_tiles(const oracle::RowDetail& row, KeyExtent part, std::int64_t tile,
                                   Precision format) {
    double most = -infinite, sum = 0;
    for (std::int64_t from = part.begin; from < part.end; from += tile) {
        const std::int64_t to = std::min(from + tile, part.end);
        const double before = most;
        for (std::int64_t j = from; j < to; ++j)
            if (row.weights[static_cast<std::size_t>(j)] > 0)
                most = std::max(most, row.scores[static_cast<std::size_t>(j)]);
        if (!std::isfinite(most)) continue;
        sum *= std::exp(before - most);
        for (std::int64_t j = from; j < to; ++j)
            if (row.weights[static_cast<std::size_t>(j)] > 0)
                sum += std::exp(row.scores[static_cast<std::size_t>(j)] - most);
        const std::optional<double> r = rounded_surely(
            sum, sum * (8 + std::abs(most) + static_cast<double>(to - from)), format);
        if (!r) return std::nullopt;
        sum = *r;
    }
    return sum > 0 ? most + std::log(sum) : most;
}

// The logarithm of l by the row's own; none where a rounding could go either way, or where the
// splits are parted in ways that tell it differently.
std::optional<double> sum_change_of_tiles(const Specification& s, const oracle::RowDetail& row,
                                          KeyExtent span, std::int64_t tile, Precision format) {
    std::optional<double> change;
    for (const auto& parts : splits_of_tiles(s.problem, span, tile)) {
        double sum = 0;
        for (const KeyExtent part : parts) {
            const std::optional<double> log_sum = sum_of_tiles(row, part, tile, format);
            if (!log_sum) return std::nullopt;
            sum += std::exp(*log_sum - row.lse);
        }
        if (change && *change != std::log(sum)) return std::nullopt;
        change = std::log(sum);
    }
    return change;
}

Deviation sum_rounded_in_tiles(RoundsTo narrow, std::int64_t tile) {
    const std::string number = std::to_string(tile);
    return as_form_of("sum_rounded",
                      of_parts(rounded_step("sum_rounded_" + id_of(narrow) + "_" + number,
                                            "a sum of weights kept in " + words_of(narrow) +
                                                ", rounded after each tile of " + number + " keys",
                                            narrow,
                                            [tile](Precision format, const Specification& s,
                                                   const oracle::RowDetail& row,
                                                   KeyExtent span) -> std::optional<WeightChange> {
                                                if (s.problem.sink) return std::nullopt;
                                                const std::optional<double> change =
                                                    sum_change_of_tiles(s, row, span, tile, format);
                                                if (!change) return std::nullopt;
                                                return WeightChange{{}, change};
                                            })));
}

Deviation sum_rounded(RoundsTo narrow) {
    return as_form_of(
        "sum_rounded",
        rounded_step(
            "sum_rounded_" + id_of(narrow),
            "a sum of weights kept in " + words_of(narrow) + ", rounded key by key", narrow,
            [](Precision format, const Specification& s, const oracle::RowDetail& row,
               KeyExtent) -> std::optional<WeightChange> {
                if (s.problem.sink) return std::nullopt;
                double sum = 0, exact = 0;
                for (std::size_t j = 0; j < row.scores.size(); ++j) {
                    if (row.weights[j] <= 0) continue;
                    const double w = std::exp(row.scores[j] - row.max);
                    const std::optional<double> r = rounded_surely(sum + w, sum + 4 * w, format);
                    if (!r) return std::nullopt;
                    sum = *r;
                    exact += w;
                }
                return WeightChange{{}, std::log(sum / exact)};
            }));
}

}  // namespace

std::vector<Deviation> rounded_sums() {
    std::vector<Deviation> list;
    for (const RoundsTo narrow : narrow_or_own) {
        list.push_back(sum_rounded(narrow));
        for (const std::int64_t tile : {16, 32, 64, 128})
            list.push_back(sum_rounded_in_tiles(narrow, tile));
    }
    return list;
}

}  // namespace attest::diagnosis
