// Steps taken in a narrower format than declared: inputs or scores rounded, an output that is cut
// off instead of rounded; with the weights and their sum.

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numbers>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rotation.hpp"
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

// As the product takes them: turned where the problem turns them.
Specification with_queries_taken(const Specification& s,
                                 const std::function<double(double)>& taken_as) {
    const auto turn = [](Specification& of, double sign) {
        of.inputs.put(Role::q, turned(of, Role::q, [&of, sign](std::int64_t b, std::int64_t i) {
                          return sign * position_of_query(of, b, i);
                      }));
    };
    Specification out = s;
    const bool rope = has_rope(s);
    if (rope) turn(out, 1);
    const Tensor q = out.inputs[Role::q];
    out.inputs.put(Role::q, remake(ElementType::f64, q.shape(),
                                   [&](std::int64_t a, std::int64_t b, std::int64_t c,
                                       std::int64_t d) { return taken_as(q.at(a, b, c, d)); }));
    if (rope) turn(out, -1);
    return out;
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
                if (scale == 0) return std::nullopt;
                Specification out = with_queries_taken(
                    s, [scale, format](double x) { return round_to(x * scale, format) / scale; });
                if (out.inputs == s.inputs) return std::nullopt;
                return out;
            }};
}

/// Which of the three that a kernel may call scores are rounded: as they enter exp, before a soft
/// cap and biases, before the scale; or the hyperbolic tangent of the cap.
enum class RoundedScores : std::uint8_t { final, scaled, products, tanh };

double behind_cap(double x, double cap) {
    return cap > 0 ? cap * std::tanh(x / cap) : x;
}
/// Infinite where the cap is reached.
double before_cap(double score, double cap) {
    return cap > 0 ? cap * std::atanh(score / cap) : score;
}

Deviation scores_rounded(RoundsTo narrow, RoundedScores which) {
    const char* ids[] = {"scores", "scaled_products", "products", "softcap_tanh"};
    const char* says[] = {"scores", "scaled products of queries and keys",
                          "products of queries and keys", "tanh of the soft cap"};
    const auto n = static_cast<std::size_t>(which);
    return as_form_of(
        std::string(ids[n]) + "_rounded",
        rounded_step(std::string(ids[n]) + "_rounded_" + id_of(narrow),
                     std::string(says[n]) + " rounded to " + words_of(narrow), narrow,
                     [which](Precision format, const Specification& s, const oracle::RowDetail& row,
                             KeyExtent) -> std::optional<WeightChange> {
                         const Problem& p = s.problem;
                         const bool plain = p.mask.tensor.kind != MaskKind::additive && !p.alibi;
                         const bool tanh = which == RoundedScores::tanh;
                         if (tanh && p.softcap == 0) return WeightChange{};
                         const double cap = which == RoundedScores::final || tanh ? 0 : p.softcap;
                         const double scale = which == RoundedScores::products ? effective_scale(p)
                                              : tanh                           ? p.softcap
                                                                               : 1.0;
                         if (scale == 0 || (which != RoundedScores::final && !plain))
                             return std::nullopt;
                         WeightChange change{std::vector<double>(row.scores.size()), {}};
                         for (std::size_t j = 0; j < row.scores.size(); ++j) {
                             if (!std::isfinite(row.scores[j])) continue;
                             const double x = before_cap(row.scores[j], cap) / scale;
                             const std::optional<double> r =
                                 rounded_surely(x, std::abs(x) + 1 / scale, format);
                             if (!r) return std::nullopt;
                             change.numerator[j] = behind_cap(*r * scale, cap) - row.scores[j];
                         }
                         return change;
                     }));
}

// What lies between two numbers of the format becomes the one nearer to 0. `bound` is of what the
// kernel holds before this last step.
std::optional<bound::Expected> output_cut_off(const Specification& s,
                                              const bound::Expected& truth) {
    const Precision format = s.problem.format_o;
    bound::Expected out = truth;
    bool any = false;
    for (bound::ExpectedElement& o : out.output) {
        const double low = cut_off(o.value - o.bound - o.error, format),
                     high = cut_off(o.value + o.bound + o.error, format);
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
        // An instruction has a format of its own, whatever that of the inputs.
        if (narrow == RoundsTo::bf16 || narrow == RoundsTo::f16)
            list.push_back(scores_rounded(narrow, RoundedScores::tanh));
        std::ranges::move(rounded_weights(narrow), std::back_inserter(list));
    }
    for (const Precision format : narrow_formats) {
        list.push_back(input_rounded(Role::q, "queries", format));
        list.push_back(input_rounded(Role::k, "keys", format));
        list.push_back(input_rounded(Role::v, "values", format));
        for (const bool log2e : {false, true}) list.push_back(query_scaled_rounded(format, log2e));
    }
    for (Deviation& d : rounded_sums()) list.push_back(std::move(d));
    for (const bool log2e : {false, true}) list.push_back(query_scaled_rounded({}, log2e));
    list.push_back(formula_deviation("output_cut_off", "an output cut off instead of rounded",
                                     output_cut_off));
    list.back().takes_dropout = true;  // it is of the finished output
    return list;
}

}  // namespace attest::diagnosis
