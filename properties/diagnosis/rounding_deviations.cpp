// Steps taken in a narrower format than declared: inputs, scores, weights or sums rounded, an
// output that is cut off instead of rounded.

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

constexpr Precision narrow_formats[] = {Precision::bf16, Precision::f16};

std::string words(Precision format) {
    return format == Precision::bf16 ? "bfloat16" : std::string(name(format));
}

// x known to within a part of its own size and of 1, as a kernel in f32 knows it at best after a
// few operations, rounded; none where it could round either way.
std::optional<double> rounded_surely(double x, double size, Precision format) {
    const double off = 0x1p-21 * size;
    const double low = round_to(x - off, format), high = round_to(x + off, format);
    if (low != high || !std::isfinite(low)) return std::nullopt;
    return low;
}

Deviation input_rounded(Role role, const std::string& tensor, Precision format) {
    return {.id = tensor + "_rounded_" + std::string(name(format)),
            .says = tensor + " rounded to " + words(format),
            .respecify = [role, format](const Specification& s) -> std::optional<Specification> {
                Specification out = s;
                Tensor& t = out.inputs[role];
                for (std::int64_t n = 0; n < t.size(); ++n) t.set(n, round_to(t.get(n), format));
                if (out.inputs == s.inputs) return std::nullopt;
                return out;
            }};
}

/// Which of the three that a kernel may call scores are rounded: as they enter exp, before a soft
/// cap and biases, before the scale.
enum class RoundedScores : std::uint8_t { final, scaled, products };

Deviation scores_rounded(Precision format, RoundedScores which) {
    const char* ids[] = {"scores", "scaled_products", "products"};
    const char* says[] = {"scores", "scaled products of queries and keys",
                          "products of queries and keys"};
    const auto n = static_cast<std::size_t>(which);
    return weight_deviation(
        std::string(ids[n]) + "_rounded_" + std::string(name(format)),
        std::string(says[n]) + " rounded to " + words(format),
        [format, which](const Specification& s, const oracle::RowDetail& row,
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
/// or after the division.
enum class RoundedWeights : std::uint8_t { output, both, divided };

// Kernels take weights by the maximum so far: the row's own from the first key on that has it.
bool maximum_in_first_tile(const oracle::RowDetail& row, KeyExtent span) {
    constexpr std::int64_t least_tile = 16;
    for (std::int64_t j = span.begin; j < std::min(span.begin + least_tile, span.end); ++j)
        if (row.scores[static_cast<std::size_t>(j)] == row.max) return true;
    return false;
}

Deviation weights_rounded(Precision format, RoundedWeights where) {
    const char* ids[] = {"", "_and_sum", "_divided"};
    const char* says[] = {", their sum not", " in both sums", " after the division"};
    const auto n = static_cast<std::size_t>(where);
    return weight_deviation("weights_rounded_" + std::string(name(format)) + ids[n],
                            "weights rounded to " + words(format) + says[n],
                            [format, where](const Specification&, const oracle::RowDetail& row,
                                            KeyExtent span) -> std::optional<WeightChange> {
                                if (!maximum_in_first_tile(row, span)) return std::nullopt;
                                WeightChange change{std::vector<double>(row.scores.size()), {}};
                                if (where != RoundedWeights::both) change.denominator = 0;
                                const double base =
                                    where == RoundedWeights::divided ? row.lse : row.max;
                                for (std::size_t j = 0; j < row.scores.size(); ++j) {
                                    if (row.weights[j] <= 0) continue;
                                    const double below = row.scores[j] - base, w = std::exp(below);
                                    const std::optional<double> r = rounded_surely(
                                        w, w * (4 + std::abs(below) + std::abs(base)), format);
                                    if (!r) return std::nullopt;
                                    change.numerator[j] = *r > 0 ? std::log(*r) - below : -infinite;
                                }
                                return change;
                            });
}

Deviation sum_rounded(Precision format) {
    return weight_deviation("sum_rounded_" + std::string(name(format)),
                            "a sum of weights kept in " + words(format) + ", rounded key by key",
                            [format](const Specification& s, const oracle::RowDetail& row,
                                     KeyExtent) -> std::optional<WeightChange> {
                                if (s.problem.sink) return std::nullopt;
                                double sum = 0, exact = 0;
                                for (std::size_t j = 0; j < row.scores.size(); ++j) {
                                    if (row.weights[j] <= 0) continue;
                                    const double w = std::exp(row.scores[j] - row.max);
                                    const std::optional<double> r =
                                        rounded_surely(sum + w, sum + 4 * w, format);
                                    if (!r) return std::nullopt;
                                    sum = *r;
                                    exact += w;
                                }
                                return WeightChange{{}, std::log(sum / exact)};
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
    for (const Precision format : narrow_formats) {
        list.push_back(input_rounded(Role::q, "queries", format));
        list.push_back(input_rounded(Role::k, "keys", format));
        list.push_back(input_rounded(Role::v, "values", format));
        for (const RoundedScores which :
             {RoundedScores::final, RoundedScores::scaled, RoundedScores::products})
            list.push_back(scores_rounded(format, which));
        for (const RoundedWeights where :
             {RoundedWeights::output, RoundedWeights::both, RoundedWeights::divided})
            list.push_back(weights_rounded(format, where));
        list.push_back(sum_rounded(format));
    }
    list.push_back(
        formula_deviation("output_cut_off", "an output cut off instead of rounded", cut_off));
    return list;
}

}  // namespace attest::diagnosis
