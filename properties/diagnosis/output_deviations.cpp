// Answers that no specification of attention gives: constants, means, sums that are not divided,
// inputs handed back.

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/diagnosis/respecify.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

using ElementOf = std::function<bound::ExpectedElement(std::int64_t b, std::int64_t h,
                                                       std::int64_t i, std::int64_t c)>;

bound::Expected output_of(const Problem& problem, const ElementOf& element) {
    bound::Expected out;
    out.output_shape = {problem.batch, problem.heads_q, problem.len_q, value_dim(problem)};
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            for (std::int64_t i = 0; i < problem.len_q; ++i)
                for (std::int64_t c = 0; c < value_dim(problem); ++c)
                    out.output.push_back(element(b, h, i, c));
    return out;
}

Deviation formula_deviation(
    std::string id, std::string says,
    std::function<std::optional<bound::Expected>(const Specification&, const bound::Expected&)>
        formula) {
    return {.id = std::move(id), .says = std::move(says), .formula = std::move(formula)};
}

Deviation constant_deviation(std::string id, std::string says, double value) {
    return formula_deviation(
        std::move(id), std::move(says),
        [value](const Specification& s, const bound::Expected&) -> std::optional<bound::Expected> {
            return output_of(s.problem, [value](auto, auto, auto, auto) {
                return bound::ExpectedElement{value, 0, 0};
            });
        });
}

// The denominator l = sum_j exp(S_ij - m) of each row as the reference has it, and what a kernel's
// own l may differ by: |log l' - log l| <= e means |l' - l| <= l (exp(e) - 1).
struct Denominator {
    double sum = 0, relative = 0;
};

Denominator denominator_of(const Specification& s, const bound::Expected& truth, std::int64_t b,
                           std::int64_t h, std::int64_t i) {
    const oracle::RowDetail row = oracle::row_detail(s.problem, s.dialect, s.inputs, b, h, i);
    const std::size_t flat =
        static_cast<std::size_t>((b * s.problem.heads_q + h) * s.problem.len_q + i);
    const double e = flat < truth.lse.size() ? truth.lse[flat].bound + truth.lse[flat].error : 0.0;
    return {row.sum, std::expm1(e)};
}

// sum_j exp(S_ij - m) v_j, never divided by l: O l. With |O' - O| <= bound and l' within its
// relative error r, |O' l' - O l| <= l (bound (1 + r) + |O| r).
std::optional<bound::Expected> not_divided(const Specification& s, const bound::Expected& truth) {
    Denominator row;
    std::size_t n = 0;
    return output_of(
        s.problem, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
            if (c == 0) row = denominator_of(s, truth, b, h, i);
            const bound::ExpectedElement& o = truth.output[n++];
            if (!(row.sum > 0)) return o;
            const double slack = o.bound + o.error;
            return bound::ExpectedElement{
                o.value * row.sum, 0,
                row.sum * (slack * (1 + row.relative) + std::abs(o.value) * row.relative)};
        });
}

// The value of the key with the largest score, all others with weight 0. Exact where the largest is
// alone.
std::optional<bound::Expected> largest_alone(const Specification& s, const bound::Expected& truth) {
    std::int64_t best = -1;
    const Tensor& v = s.inputs[Role::v];
    const std::int64_t group = group_size(s.problem);
    std::size_t n = 0;
    return output_of(
        s.problem, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
            const bound::ExpectedElement& o = truth.output[n++];
            if (c == 0) {
                best = -1;
                const oracle::RowDetail row =
                    oracle::row_detail(s.problem, s.dialect, s.inputs, b, h, i);
                for (std::size_t j = 0; j < row.scores.size(); ++j)
                    if (row.weights[j] > 0 &&
                        (best < 0 || row.scores[j] > row.scores[static_cast<std::size_t>(best)]))
                        best = static_cast<std::int64_t>(j);
            }
            return best < 0 ? o : bound::ExpectedElement{v.at(b, h / group, best, c), 0, 0};
        });
}

std::optional<bound::Expected> input_v(const Specification& s, const bound::Expected&) {
    const Tensor& v = s.inputs[Role::v];
    const Problem& p = s.problem;
    if (p.len_q != p.len_kv) return std::nullopt;
    return output_of(p, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
        return bound::ExpectedElement{v.at(b, h / group_size(p), i, c), 0, 0};
    });
}

// Q = K = 0 and no bias: every visible key weighs the same. What a sink would weigh is open.
std::optional<Specification> uniform(const Specification& s, const Rules& rules) {
    if (s.problem.sink) return std::nullopt;
    Specification out = with_rules(s, rules);
    for (const Role role : {Role::q, Role::k}) {
        const Tensor& from = s.inputs[role];
        out.inputs.put(role, Tensor(from.type(), from.shape()));
    }
    const double minus_infinity = -std::numeric_limits<double>::infinity();
    out = with_mask_values(
        out, [minus_infinity](double x) { return x == minus_infinity ? minus_infinity : 0.0; });
    out.problem.alibi = false;
    out.problem.rope = {};
    out.problem.softcap = 0;
    return out;
}

// Hidden keys get this score itself, not added to the one they have: a bias of score - S_ij.
Deviation finite_hidden(std::string id, std::string says,
                        std::function<std::optional<double>(const Problem&)> score_of) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [score_of = std::move(score_of)](
                             const Specification& s) -> std::optional<Specification> {
                const std::optional<double> score = score_of(s.problem);
                if (!score) return std::nullopt;
                const Specification plain = unmasked(s);
                std::int64_t b = -1, h = -1, i = -1;
                oracle::RowDetail row;
                return with_rules(s, rules_of(s), [&](const MaskPlace& p) {
                    if (p.batch != b || p.head != h || p.query != i) {
                        b = p.batch, h = p.head, i = p.query;
                        row =
                            oracle::row_detail(plain.problem, plain.dialect, plain.inputs, b, h, i);
                    }
                    return *score - row.scores[static_cast<std::size_t>(p.key)];
                });
            }};
}

// A large finite score instead of -inf: where every key of a query is hidden, all of them weigh the
// same; where one is visible, the others vanish beside it as they should.
std::optional<bound::Expected> mean_in_empty_rows(const Specification& s,
                                                  const bound::Expected& truth) {
    Rules rules;
    rules.documents = rules.mask_tensor = false;
    const std::optional<Specification> flat = uniform(s, rules);
    if (!flat) return std::nullopt;
    const bound::Expected mean =
        oracle::attend(flat->problem, flat->dialect, flat->numerics, flat->inputs);
    bound::Expected out = truth;
    bool any = false;
    const std::size_t dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t row = 0; row < truth.row_empty.size(); ++row) {
        const std::int64_t i = static_cast<std::int64_t>(row) % s.problem.len_q;
        const std::int64_t b =
            static_cast<std::int64_t>(row) / (s.problem.heads_q * s.problem.len_q);
        const bool query = i < length_of(s.problem.mask.lens_q, s.problem.len_q, b);
        if (truth.row_empty[row] == 0 || !query) continue;
        any = true;
        // Its log-sum-exp is the unknown score and the log of the number of keys.
        if (row < out.lse.size()) out.lse[row] = {0, 0, std::numeric_limits<double>::infinity()};
        for (std::size_t c = 0; c < dim; ++c)
            out.output[row * dim + c] = mean.output[row * dim + c];
    }
    if (!any) return std::nullopt;
    return out;
}

// exp(S - m) of an f32 with m = 0 where every S is negative. Below -104 it is 0, whatever the
// arithmetic: half the least subnormal is exp(-103.97). Between there and -87, where exp becomes
// subnormal, nothing is claimed. A denominator of 0 leaves NaN, or 0 where it is guarded.
std::optional<bound::Expected> maximum_from_zero(const Specification& s,
                                                 const bound::Expected& truth) {
    if (s.problem.sink || s.problem.format_q == Precision::f64) return std::nullopt;
    constexpr double infinite = std::numeric_limits<double>::infinity();
    bool any = false;
    std::size_t n = 0;
    double largest = 0;
    bound::Expected out =
        output_of(s.problem, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
            const std::size_t row = n / static_cast<std::size_t>(value_dim(s.problem));
            const bound::ExpectedElement& o = truth.output[n++];
            if (truth.row_empty[row] != 0) return o;
            if (c == 0) largest = oracle::row_detail(s.problem, s.dialect, s.inputs, b, h, i).max;
            if (largest > -87) return o;
            any = any || largest < -104;
            return largest < -104 ? bound::ExpectedElement{std::nan(""), 0, 0}
                                  : bound::ExpectedElement{0, 0, infinite};
        });
    if (!any) return std::nullopt;
    return out;
}

// Inputs below the least normal number of f32, and outputs that are so, are 0.
std::optional<bound::Expected> subnormals_flushed(const Specification& s, const bound::Expected&) {
    if (s.problem.format_q == Precision::f64) return std::nullopt;
    constexpr double least = std::numeric_limits<float>::min();
    Specification flushed = s;
    for (const Role role : {Role::q, Role::k, Role::v}) {
        Tensor& tensor = flushed.inputs[role];
        for (std::int64_t n = 0; n < tensor.size(); ++n)
            if (std::abs(tensor.get(n)) < least) tensor.set(n, 0);
    }
    bound::Expected out =
        oracle::attend(flushed.problem, flushed.dialect, flushed.numerics, flushed.inputs);
    for (bound::ExpectedElement& o : out.output)
        if (std::abs(o.value) + o.bound + o.error < least) o = {};
    return out;
}

// The splits' own outputs averaged with equal weight instead of merged by their log-sum-exp. Splits
// take ceil(keys / splits) keys each; one in which a query sees no key has no output of it.
std::optional<bound::Expected> splits_averaged(const Specification& s,
                                               const bound::Expected& truth) {
    if (s.problem.splits < 2 || s.problem.sink) return std::nullopt;
    bound::Expected mean = truth;
    mean.lse.clear();
    for (bound::ExpectedElement& o : mean.output) o = {};
    std::vector<double> parts(truth.row_empty.size());
    const std::size_t dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::int64_t split = 0; split < s.problem.splits; ++split) {
        Rules rules = rules_of(s);
        rules.also_hidden = [split, splits = s.problem.splits](const MaskPlace& p) {
            const std::int64_t n =
                std::clamp<std::int64_t>(splits, 1, std::max<std::int64_t>(1, p.len_kv));
            const std::int64_t each = (p.len_kv + n - 1) / n;
            return p.column < split * each || p.column >= (split + 1) * each;
        };
        const Specification part = with_rules(s, rules);
        const bound::Expected e =
            oracle::attend(part.problem, part.dialect, part.numerics, part.inputs);
        for (std::size_t row = 0; row < parts.size(); ++row) {
            if (e.row_empty[row] != 0) continue;
            ++parts[row];
            for (std::size_t k = row * dim; k < (row + 1) * dim; ++k) {
                mean.output[k].value += e.output[k].value;
                mean.output[k].error += e.output[k].error;
                mean.output[k].bound += e.output[k].bound;
            }
        }
    }
    for (std::size_t row = 0; row < parts.size(); ++row)
        for (std::size_t k = row * dim; k < (row + 1) * dim; ++k) {
            bound::ExpectedElement& o = mean.output[k];
            if (parts[row] == 0)
                o = truth.output[k];
            else
                o = {o.value / parts[row], o.error / parts[row], o.bound / parts[row]};
        }
    return mean;
}

Deviation empty_rows(std::string id, std::string says, EmptyRow policy) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [policy](const Specification& s) -> std::optional<Specification> {
                if (s.dialect.empty_row == policy || s.dialect.empty_row == EmptyRow::refuse)
                    return std::nullopt;
                Specification out = s;
                out.dialect.empty_row = policy;
                return out;
            },
            .declares = [](const Specification& s) -> std::string {
                return s.dialect.empty_row == EmptyRow::zeros
                           ? "zeros: a query that sees no key gives 0"
                           : "nan: a query that sees no key gives NaN";
            }};
}

}  // namespace

std::vector<Deviation> output_deviations() {
    std::vector<Deviation> list{
        empty_rows("empty_row_nan", "NaN where a query sees no key", EmptyRow::nan),
        empty_rows("empty_row_zeros", "zeros where a query sees no key", EmptyRow::zeros),
        constant_deviation("zeros", "zeros everywhere", 0.0),
        constant_deviation("nan", "NaN everywhere", std::numeric_limits<double>::quiet_NaN()),
        {.id = "uniform_visible",
         .says = "the plain mean of the visible values",
         .respecify = [](const Specification& s) { return uniform(s, rules_of(s)); }},
        {.id = "uniform_all",
         .says = "the plain mean of all values",
         .respecify =
             [](const Specification& s) {
                 Rules rules;
                 rules.key_lengths = rules.documents = rules.mask_tensor = false;
                 return uniform(s, rules);
             }},
        formula_deviation("hidden_finite",
                          "the plain mean of all values where a query sees no key: a finite score "
                          "stands for -inf",
                          mean_in_empty_rows),
        finite_hidden("hidden_minus_1e4", "hidden keys with score -1e4 instead of -inf",
                      [](const Problem&) { return -1e4; }),
        finite_hidden("softcap_over_mask",
                      "the soft cap over the mask: hidden keys with score -cap",
                      [](const Problem& p) -> std::optional<double> {
                          if (p.softcap > 0) return -p.softcap;
                          return std::nullopt;
                      }),
        formula_deviation("maximum_from_zero",
                          "a running maximum that starts at 0: where all scores are far below, "
                          "every weight underflows",
                          maximum_from_zero),
        formula_deviation("subnormals_flushed", "subnormal numbers taken for 0",
                          subnormals_flushed),
        formula_deviation("not_divided", "weights that are never divided by their sum",
                          not_divided),
        formula_deviation("splits_averaged", "the splits averaged with equal weight",
                          splits_averaged),
        formula_deviation("largest_alone", "the value of the largest score alone", largest_alone),
        formula_deviation("input_v", "the input V handed back", input_v),
    };
    return list;
}

}  // namespace attest::diagnosis
