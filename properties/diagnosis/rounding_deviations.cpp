// Steps taken in a narrower format than declared: inputs, scores or weights rounded, an output that
// is cut off instead of rounded.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rounded_step.hpp"

namespace attest::diagnosis {

namespace {

constexpr Precision narrow_formats[] = {Precision::bf16, Precision::f16};

Deviation input_rounded(Role role, const std::string& tensor, Precision format) {
    return {.id = tensor + "_rounded_" + std::string(name(format)),
            .says = tensor + " rounded to " + words_of(format),
            .respecify = [role, format](const Specification& s) -> std::optional<Specification> {
                Specification out = s;
                Tensor& t = out.inputs[role];
                for (std::int64_t n = 0; n < t.size(); ++n) t.set(n, round_to(t.get(n), format));
                if (out.inputs == s.inputs) return std::nullopt;
                return out;
            }};
}

// Queries are multiplied by the scale, or by it and log2(e), and rounded before the product.
// Without a format: to that of the queries.
Deviation query_scaled_rounded(std::optional<Precision> narrow, bool log2e) {
    return {.id = std::string(log2e ? "queries_log2_rounded_" : "queries_scaled_rounded_") +
                  (narrow ? std::string(name(*narrow)) : "own"),
            .says = std::string("queries times the scale") + (log2e ? " and log2(e)" : "") +
                    " rounded to " + (narrow ? words_of(*narrow) : "the format of the queries"),
            .respecify = [narrow, log2e](const Specification& s) -> std::optional<Specification> {
                const Precision format = narrow.value_or(s.problem.format_q);
                if (traits(format).significand_bits > traits(Precision::f16).significand_bits)
                    return std::nullopt;
                const double scale =
                    effective_scale(s.problem) * (log2e ? std::numbers::log2e : 1.0);
                if (s.problem.rope.style != RopeStyle::none || scale == 0) return std::nullopt;
                Specification out = s;
                const Tensor& q = s.inputs[Role::q];
                out.inputs.put(Role::q, remake(ElementType::f64, q.shape(),
                                               [&](std::int64_t a, std::int64_t b, std::int64_t c,
                                                   std::int64_t d) {
                                                   const double x = q.at(a, b, c, d) * scale;
                                                   return round_to(x, format) / scale;
                                               }));
                if (out.inputs == s.inputs) return std::nullopt;
                return out;
            }};
}

/// Which of the three that a kernel may call scores are rounded: as they enter exp, before a soft
/// cap and biases, before the scale.
enum class RoundedScores : std::uint8_t { final, scaled, products };

Deviation scores_rounded(RoundsTo narrow, RoundedScores which) {
    const char* ids[] = {"scores", "scaled_products", "products"};
    const char* says[] = {"scores", "scaled products of queries and keys",
                          "products of queries and keys"};
    const auto n = static_cast<std::size_t>(which);
    return rounded_step(
        std::string(ids[n]) + "_rounded_" + id_of(narrow),
        std::string(says[n]) + " rounded to " + words_of(narrow), narrow,
        [which](Precision format, const Specification& s, const oracle::RowDetail& row,
                KeyExtent) -> std::optional<WeightChange> {
            const Problem& p = s.problem;
            const bool plain =
                p.mask.tensor.kind != MaskKind::additive && !p.alibi && p.softcap == 0;
            const double scale = which == RoundedScores::products ? effective_scale(p) : 1.0;
            if (scale == 0 || (which != RoundedScores::final && !plain)) return std::nullopt;
            WeightChange change{std::vector<double>(row.scores.size()), {}};
            for (std::size_t j = 0; j < row.scores.size(); ++j) {
                if (!std::isfinite(row.scores[j])) continue;
                const double x = row.scores[j] / scale;
                const std::optional<double> r = rounded_surely(x, std::abs(x) + 1 / scale, format);
                if (!r) return std::nullopt;
                change.numerator[j] = *r * scale - row.scores[j];
            }
            return change;
        });
}

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

Deviation weights_rounded(RoundsTo narrow, RoundedWeights where, Splits splits) {
    const char* ids[] = {"", "_and_sum", "_divided", "_in_sum"};
    const char* says[] = {", their sum not", " in both sums", " after the division",
                          " in their sum alone"};
    const auto n = static_cast<std::size_t>(where);
    return rounded_step(
        "weights_rounded_" + id_of(narrow) + ids[n] + (splits == Splits::asked ? "_by_split" : ""),
        "weights rounded to " + words_of(narrow) + says[n], narrow,
        [where, splits](Precision format, const Specification& s, const oracle::RowDetail& row,
                        KeyExtent span) -> std::optional<WeightChange> {
            std::optional<WeightChange> change;
            for (const auto& parts : ways_to_split(s.problem, span, splits)) {
                const auto keys = by_first_tile(row, parts);
                auto own = keys ? rounded_in_parts(format, where, row, *keys) : std::nullopt;
                if (!own || (change && (own->numerator != change->numerator ||
                                        own->denominator != change->denominator)))
                    return std::nullopt;
                change = std::move(own);
            }
            return change;
        });
}

Deviation weights_rounded_in_tiles(RoundsTo narrow, RoundedWeights where, std::int64_t tile) {
    const char* ids[] = {"_", "_and_sum_", "_divided_", "_in_sum_"};
    const char* says[] = {", their sum not", " in both sums", " after the division",
                          " in their sum alone"};
    const auto n = static_cast<std::size_t>(where);
    return rounded_step(
        "weights_rounded_" + id_of(narrow) + ids[n] + std::to_string(tile),
        "weights rounded to " + words_of(narrow) + says[n] +
            ", by the maximum so far in tiles of " + std::to_string(tile) + " keys",
        narrow,
        [where, tile](Precision format, const Specification& s, const oracle::RowDetail& row,
                      KeyExtent span) -> std::optional<WeightChange> {
            if (s.problem.splits > 1) return std::nullopt;
            return rounded_in_parts(format, where, row, by_running_maximum(row, span, tile));
        });
}

// What lies between two numbers of the format becomes the one nearer to 0. `bound` is of what the
// kernel holds before this last step.
std::optional<bound::Expected> cut_off(const Specification& s, const bound::Expected& truth) {
    const Precision format = s.problem.format_o;
    const auto cut = [format](double x) {
        const double nearest = round_to(x, format);
        return std::abs(nearest) <= std::abs(x) ? nearest
                                                : decode(encode(nearest, format) - 1, format);
    };
    bound::Expected out = truth;
    bool any = false;
    for (bound::ExpectedElement& o : out.output) {
        const double low = cut(o.value - o.bound - o.error),
                     high = cut(o.value + o.bound + o.error);
        // Next to a number of the format it may become that one or its neighbour.
        any = any || low != high || low != round_to(o.value, format);
        o = std::isfinite(low) && std::isfinite(high)
                ? bound::ExpectedElement{(low + high) / 2, 0, std::abs(high - low) / 2}
                : bound::ExpectedElement{0, 0, infinite};
    }
    if (!any) return std::nullopt;
    return out;
}

}  // namespace

std::vector<Deviation> rounding_deviations() {
    std::vector<Deviation> list;
    for (const RoundsTo narrow : narrow_or_own) {
        for (const RoundedScores which :
             {RoundedScores::final, RoundedScores::scaled, RoundedScores::products})
            list.push_back(scores_rounded(narrow, which));
        for (const RoundedWeights where : {RoundedWeights::output, RoundedWeights::both,
                                           RoundedWeights::divided, RoundedWeights::sum})
            list.push_back(weights_rounded(narrow, where, Splits::any));
    }
    for (const Precision format : narrow_formats) {
        list.push_back(input_rounded(Role::q, "queries", format));
        list.push_back(input_rounded(Role::k, "keys", format));
        list.push_back(input_rounded(Role::v, "values", format));
        for (const bool log2e : {false, true}) list.push_back(query_scaled_rounded(format, log2e));
    }
    for (Deviation& d : rounded_sums()) list.push_back(std::move(d));
    for (const bool log2e : {false, true}) list.push_back(query_scaled_rounded({}, log2e));
    list.push_back(
        formula_deviation("output_cut_off", "an output cut off instead of rounded", cut_off));
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
