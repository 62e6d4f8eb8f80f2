// Answers that no specification of attention gives: constants, means, sums that are not divided,
// inputs handed back.

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

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

Denominator denominator_of(const oracle::RowDetail& row, const bound::Expected& truth,
                           std::size_t flat) {
    const double e = flat < truth.lse.size() ? truth.lse[flat].bound + truth.lse[flat].error : 0.0;
    return {row.sum, std::expm1(e)};
}

// sum_j exp(S_ij - m) v_j, never divided by l: O l. With |O' - O| <= bound and l' within its
// relative error r, |O' l' - O l| <= l (bound (1 + r) + |O| r).
std::optional<bound::Expected> not_divided(const Specification& s, const bound::Expected& truth) {
    const auto rows = rows_of(s);
    Denominator row;
    std::size_t n = 0, flat = 0;
    return output_of(s.problem, [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t c) {
        if (c == 0) row = denominator_of((*rows)[flat], truth, flat), ++flat;
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
    const auto rows = rows_of(s);
    std::size_t n = 0, flat = 0;
    return output_of(s.problem, [&](std::int64_t b, std::int64_t h, std::int64_t, std::int64_t c) {
        const bound::ExpectedElement& o = truth.output[n++];
        if (c == 0) {
            best = -1;
            const oracle::RowDetail& row = (*rows)[flat++];
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

// As many channels of the values are read as queries and keys have; the others count as 0.
std::optional<bound::Expected> values_of_key_channels(const Specification& s,
                                                      const bound::Expected& truth) {
    const std::int64_t dim = value_dim(s.problem);
    if (dim <= s.problem.dim_qk) return std::nullopt;
    bound::Expected out = truth;
    for (std::size_t n = 0; n < out.output.size(); ++n) {
        const auto flat = static_cast<std::int64_t>(n);
        if (truth.row_empty[static_cast<std::size_t>(flat / dim)] == 0 &&
            flat % dim >= s.problem.dim_qk)
            out.output[n] = {};
    }
    return out;
}

/// Of the sizes of all values a sum is 0 where each of them is, not where they cancel.
std::vector<bound::ExpectedElement> sums_of_sizes(Specification s) {
    Tensor& v = s.inputs[Role::v];
    for (std::int64_t n = 0; n < v.size(); ++n) v.set(n, std::abs(v.get(n)));
    return oracle::attend(s.problem, s.dialect, s.numerics, s.inputs).output;
}

// Inputs below the least normal number of f32 are 0, and what is made of nothing else is. Sums and
// products may be, wherever the kernel makes them (PyTorch's flash in bf16 divides afterwards): the
// bound of an arithmetic that flushes says how far that reaches.
std::optional<bound::Expected> subnormals_flushed(const Specification& s, const bound::Expected&) {
    if (s.problem.format_q == Precision::f64) return std::nullopt;
    constexpr double least = std::numeric_limits<float>::min();
    Specification flushed = s;
    flushed.numerics.flush_subnormals = true;
    for (const Role role : {Role::q, Role::k, Role::v}) {
        Tensor& tensor = flushed.inputs[role];
        for (std::int64_t n = 0; n < tensor.size(); ++n)
            if (std::abs(tensor.get(n)) < least) tensor.set(n, 0);
    }
    bound::Expected out =
        oracle::attend(flushed.problem, flushed.dialect, flushed.numerics, flushed.inputs);
    const std::vector<bound::ExpectedElement> sizes = sums_of_sizes(std::move(flushed));
    for (std::size_t n = 0; n < sizes.size(); ++n)
        if (sizes[n].value == 0) out.output[n] = {};
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
                if (s.dialect.empty_row == EmptyRow::mean)
                    return "mean: a query that sees no key gives the mean of all values";
                return s.dialect.empty_row == EmptyRow::zeros
                           ? "zeros: a query that sees no key gives 0"
                           : "nan: a query that sees no key gives NaN";
            }};
}

}  // namespace

std::vector<Deviation> output_deviations() {
    Deviation flushed = formula_deviation("subnormals_flushed", "subnormal numbers taken for 0",
                                          subnormals_flushed);
    flushed.declares = [](const Specification&) -> std::string {
        return "no such arithmetic; by design? declare numerics: flush_subnormals true";
    };
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
        std::move(flushed),
        formula_deviation("not_divided", "weights that are never divided by their sum",
                          not_divided),
        formula_deviation("splits_averaged", "the splits averaged with equal weight",
                          splits_averaged),
        formula_deviation("largest_alone", "the value of the largest score alone", largest_alone),
        formula_deviation("values_of_key_channels",
                          "zeros in the output's channels from D on, where Dv > D",
                          values_of_key_channels),
        formula_deviation("input_v", "the input V handed back", input_v),
    };
    return list;
}

}  // namespace attest::diagnosis
