// Weights kept in a narrower format than declared.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

/// Where weights are rounded: exp(S - m), with the sum made of them as they were or as they are,
/// or after the division; or in the sum alone.
enum class RoundedWeights : std::uint8_t { output, both, divided, sum };

// Kernels take weights by the maximum so far: that of the keys, or of the split, from the first key
// on that has it. None where that is no key of the first tile.
std::optional<double> maximum_in_first_tile(const oracle::RowDetail& row, KeyExtent span) {
    constexpr std::int64_t least_tile = 16;
    const auto from = row.scores.begin() + span.begin, to = row.scores.begin() + span.end;
    const auto most = std::max_element(from, to);
    if (most == to || most - from >= least_tile) return std::nullopt;
    return *most;
}

/// What a kernel's splits are taken to be: whatever kernels are known to make of them, of which
/// nothing is told where they differ, or as the problem asks for them.
enum class Splits : std::uint8_t { any, asked };

// As many keys for each split, or as many whole tiles of any size.
std::vector<std::vector<KeyExtent>> ways_to_split(const Problem& problem, KeyExtent span,
                                                  Splits splits) {
    std::vector<std::vector<KeyExtent>> ways{split_extents(problem, span)};
    if (problem.splits > 1 && splits == Splits::any)
        for (const std::int64_t tile : {16, 32, 64, 128})
            ways.push_back(splits_of_tiles(problem, span, tile).back());
    return ways;
}

/// Keys whose weights are taken by one maximum.
struct KeysOfMaximum {
    KeyExtent keys;
    double maximum = -infinite;
};

std::optional<std::vector<KeysOfMaximum>> by_first_tile(const oracle::RowDetail& row,
                                                        const std::vector<KeyExtent>& parts) {
    std::vector<KeysOfMaximum> list;
    for (const KeyExtent part : parts) {
        const std::optional<double> most = maximum_in_first_tile(row, part);
        if (!most) return std::nullopt;
        list.push_back({part, *most});
    }
    return list;
}

// The maximum of a tile's keys and of all before them.
std::vector<KeysOfMaximum> by_running_maximum(const oracle::RowDetail& row, KeyExtent span,
                                              std::int64_t tile) {
    std::vector<KeysOfMaximum> list;
    double most = -infinite;
    for (std::int64_t from = span.begin; from < span.end; from += tile) {
        const KeyExtent keys{from, std::min(from + tile, span.end)};
        for (std::int64_t j = keys.begin; j < keys.end; ++j)
            most = std::max(most, row.scores[static_cast<std::size_t>(j)]);
        list.push_back({keys, most});
    }
    return list;
}

std::optional<WeightChange> rounded_in_parts(Precision format, RoundedWeights where,
                                             const oracle::RowDetail& row,
                                             const std::vector<KeysOfMaximum>& parts) {
    WeightChange change{std::vector<double>(row.scores.size()), {}};
    if (where != RoundedWeights::both) change.denominator = 0;
    for (const auto& [part, most] : parts) {
        const double base = where == RoundedWeights::divided ? row.lse : most;
        for (auto j = static_cast<std::size_t>(part.begin); j < static_cast<std::size_t>(part.end);
             ++j) {
            if (row.weights[j] <= 0) continue;
            const double below = row.scores[j] - base, w = std::exp(below);
            const std::optional<double> r =
                rounded_surely(w, w * (4 + std::abs(below) + std::abs(base)), format);
            if (!r) return std::nullopt;
            change.numerator[j] = *r > 0 ? std::log(*r) - below : -infinite;
        }
    }
    if (where == RoundedWeights::sum) {
        change.denominator = log_sum_change(row, change.numerator);
        change.numerator.assign(row.scores.size(), 0);
    }
    return change;
}

// None where a row's keys may be parted in ways that round its weights differently.
std::optional<WeightChange> rounded_in_all(
    Precision format, RoundedWeights where, const oracle::RowDetail& row,
    const std::vector<std::optional<std::vector<KeysOfMaximum>>>& ways) {
    std::optional<WeightChange> change;
    for (const auto& parts : ways) {
        auto own = parts ? rounded_in_parts(format, where, row, *parts) : std::nullopt;
        if (!own || (change && (own->numerator != change->numerator ||
                                own->denominator != change->denominator)))
            return std::nullopt;
        change = std::move(own);
    }
    return change;
}

struct RoundedWeightsTexts {
    const char *id, *says;
};
RoundedWeightsTexts texts_of(RoundedWeights where) {
    constexpr RoundedWeightsTexts texts[] = {{"", ", their sum not"},
                                             {"_and_sum", " in both sums"},
                                             {"_divided", " after the division"},
                                             {"_in_sum", " in their sum alone"}};
    return texts[static_cast<std::size_t>(where)];
}

/// Whatever the format, and whatever the maximum is of.
Deviation as_rounded_weights(RoundedWeights where, Deviation deviation) {
    return as_form_of(std::string("weights_rounded") + texts_of(where).id,
                      of_parts(std::move(deviation)));
}

Deviation weights_rounded(RoundsTo narrow, RoundedWeights where, Splits splits) {
    return as_rounded_weights(
        where, rounded_step("weights_rounded_" + id_of(narrow) + texts_of(where).id +
                                (splits == Splits::asked ? "_by_split" : ""),
                            "weights rounded to " + words_of(narrow) + texts_of(where).says, narrow,
                            [where, splits](Precision format, const Specification& s,
                                            const oracle::RowDetail& row, KeyExtent span) {
                                std::vector<std::optional<std::vector<KeysOfMaximum>>> ways;
                                for (const auto& parts : ways_to_split(s.problem, span, splits))
                                    ways.push_back(by_first_tile(row, parts));
                                return rounded_in_all(format, where, row, ways);
                            }));
}

Deviation weights_rounded_in_tiles(RoundsTo narrow, RoundedWeights where, std::int64_t tile) {
    return as_rounded_weights(
        where,
        rounded_step(
            "weights_rounded_" + id_of(narrow) + texts_of(where).id + "_" + std::to_string(tile),
            "weights rounded to " + words_of(narrow) + texts_of(where).says +
                ", by the maximum so far in tiles of " + std::to_string(tile) + " keys",
            narrow,
            [where, tile](Precision format, const Specification& s, const oracle::RowDetail& row,
                          KeyExtent span) {
                std::vector<std::optional<std::vector<KeysOfMaximum>>> ways;
                for (const auto& parts : splits_of_tiles(s.problem, span, tile)) {
                    std::vector<KeysOfMaximum>& all = ways.emplace_back().emplace();
                    for (const KeyExtent part : parts)
                        std::ranges::move(by_running_maximum(row, part, tile),
                                          std::back_inserter(all));
                }
                return rounded_in_all(format, where, row, ways);
            }));
}

}  // namespace

std::vector<Deviation> rounded_weights(RoundsTo narrow) {
    std::vector<Deviation> list;
    for (const RoundedWeights where : {RoundedWeights::output, RoundedWeights::both,
                                       RoundedWeights::divided, RoundedWeights::sum})
        list.push_back(weights_rounded(narrow, where, Splits::any));
    return list;
}

std::vector<Deviation> weights_of_splits_rounded() {
    std::vector<Deviation> list;
    for (const RoundsTo narrow : narrow_or_own)
        for (const RoundedWeights where : {RoundedWeights::output, RoundedWeights::both})
            list.push_back(weights_rounded(narrow, where, Splits::asked));
    return list;
}

std::vector<Deviation> weights_of_tiles_rounded() {
    std::vector<Deviation> list;
    for (const RoundsTo narrow : narrow_or_own)
        for (const RoundedWeights where :
             {RoundedWeights::output, RoundedWeights::both, RoundedWeights::sum})
            for (const std::int64_t tile : {16, 32, 64, 128})
                list.push_back(weights_rounded_in_tiles(narrow, where, tile));
    return list;
}

}  // namespace attest::diagnosis
