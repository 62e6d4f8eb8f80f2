// Several inputs at once in a narrower format, as a unit that multiplies matrices in it takes them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"
#include "reference/problem/operands.hpp"

namespace attest::diagnosis {

namespace {

struct CoarseFormat {
    const char *id, *says, *word;
    double (*of)(double);
    bool (*narrower)(Precision);
};

constexpr CoarseFormat coarse_formats[] = {
    {"tf32_cut", "cut off to TF32", "operands tf32", [](double x) { return to_tf32(x, true); },
     [](Precision p) { return p == Precision::f32 || p == Precision::f64; }},
    {"tf32", "rounded to TF32", "operands tf32", [](double x) { return to_tf32(x, false); },
     [](Precision p) { return p == Precision::f32 || p == Precision::f64; }},
    {"bf16", "rounded to bfloat16", "operands bf16",
     [](double x) { return round_to(x, Precision::bf16); },
     [](Precision p) { return p != Precision::bf16; }},
    {"f16", "rounded to f16", "operands f16", [](double x) { return round_to(x, Precision::f16); },
     [](Precision p) { return p != Precision::f16; }},
    {"f32", "rounded to f32", "operands f32", [](double x) { return round_to(x, Precision::f32); },
     [](Precision p) { return p == Precision::f64; }},
};

struct CoarseInputs {
    const char *id, *says;
    std::vector<Role> roles;
    bool weights = false;
};

// Before a rotation or behind it: with one nothing is claimed.
std::optional<Specification> narrowed(const Specification& s, const CoarseFormat& format,
                                      const std::vector<Role>& roles) {
    const Problem& p = s.problem;
    if (!format.narrower(p.format_q) || !format.narrower(p.format_kv)) return std::nullopt;
    if (p.rope.style != RopeStyle::none) return std::nullopt;
    Specification out = s;
    for (const Role role : roles) {
        const Tensor& from = s.inputs[role];
        Tensor& to = out.inputs.put(role, Tensor(ElementType::f64, from.shape()));
        for (std::int64_t n = 0; n < from.size(); ++n) to.set(n, format.of(from.get(n)));
    }
    return out;
}

// As far from it as a number known to a few roundings to f32 of the score and of exp can be; none
// where it could become two numbers of the format.
std::optional<WeightChange> narrowed_weights(const CoarseFormat& format, const Specification& s,
                                             const oracle::RowDetail& row, KeyExtent span) {
    WeightChange change{std::vector<double>(row.scores.size()), 0.0};
    double most = -infinite;
    std::int64_t at = span.begin;
    for (std::int64_t j = span.begin; j < span.end; ++j)
        if (row.scores[static_cast<std::size_t>(j)] > most)
            most = row.scores[static_cast<std::size_t>(j)], at = j;
    constexpr std::int64_t least_tile = 16;
    if (s.problem.splits > 1 || at - span.begin >= least_tile) return std::nullopt;
    for (std::size_t j = 0; j < row.scores.size(); ++j) {
        if (row.weights[j] <= 0) continue;
        const double below = row.scores[j] - most, w = std::exp(below);
        const double off = 0x1p-21 * w * (4 + std::abs(below) + std::abs(most));
        const double low = format.of(w - off), high = format.of(w + off);
        if (low != high) return std::nullopt;
        change.numerator[j] = low > 0 ? std::log(low) - below : -infinite;
    }
    return change;
}

bool weights_known(const CoarseFormat& format, const Specification& s) {
    const auto rows = rows_of(s);
    std::int64_t flat = 0;
    return std::ranges::all_of(*rows, [&](const oracle::RowDetail& row) {
        const std::int64_t n = flat++;
        const KeyExtent span =
            span_of(s, n / s.problem.len_q / s.problem.heads_q, n % s.problem.len_q);
        return !std::isfinite(row.max) || narrowed_weights(format, s, row, span);
    });
}

Deviation narrow_inputs_of(const CoarseInputs& which, const CoarseFormat& format) {
    const std::string id = std::string(which.id) + "_as_" + format.id;
    const std::string says = std::string(which.says) + " " + format.says;
    if (!which.weights)
        return {.id = id,
                .says = says,
                .respecify = [format, roles = which.roles](const Specification& s) {
                    return narrowed(s, format, roles);
                }};
    const Deviation weights = weight_deviation(
        "", "", [format](const Specification& s, const oracle::RowDetail& row, KeyExtent span) {
            return narrowed_weights(format, s, row, span);
        });
    return formula_deviation(
        id, says,
        [format, weights, roles = which.roles](
            const Specification& s, const bound::Expected&) -> std::optional<bound::Expected> {
            const auto own = narrowed(s, format, roles);
            if (!own) return std::nullopt;
            const bound::Expected of_inputs =
                oracle::attend(own->problem, own->dialect, own->numerics, own->inputs);
            if (auto both = weights.formula(*own, of_inputs)) return both;
            if (!weights_known(format, *own)) return std::nullopt;
            return of_inputs;
        });
}

Deviation narrow_inputs(const CoarseInputs& which, const CoarseFormat& format) {
    Deviation d = narrow_inputs_of(which, format);
    d.declares = [word = format.word](const Specification&) {
        return std::string("no such step; by design? declare numerics: ") + word;
    };
    return d;
}

}  // namespace

std::vector<Deviation> inputs_narrowed() {
    const CoarseInputs list_of[] = {
        {"queries_keys", "queries and keys", {Role::q, Role::k}},
        {"queries_keys_values", "queries, keys and values", {Role::q, Role::k, Role::v}},
        {"values", "values", {Role::v}},
        {"products", "queries, keys, weights and values", {Role::q, Role::k, Role::v}, true},
        {"values_weights", "weights and values", {Role::v}, true},
        {"queries", "queries", {Role::q}},
        {"keys", "keys", {Role::k}},
    };
    std::vector<Deviation> list;
    for (const CoarseInputs& which : list_of)
        for (const CoarseFormat& format : coarse_formats) {
            const std::string_view id = format.id;
            const bool listed = which.roles.size() == 1 && !which.weights && !id.starts_with("tf");
            if (!listed || id == "f32") list.push_back(narrow_inputs(which, format));
        }
    return list;
}

}  // namespace attest::diagnosis
