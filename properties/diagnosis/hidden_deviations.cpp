// What a kernel does where nothing, or next to nothing, has a weight: a finite score for what is
// hidden, a running maximum that starts too high.

#include <cmath>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

// Hidden keys get this score itself, not added to the one they have: a bias of score - S_ij.
// `within`: keys of other documents are never looked at.
Deviation finite_hidden(std::string id, std::string says,
                        std::function<std::optional<double>(const Problem&)> score_of,
                        bool within = false) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [score_of = std::move(score_of),
                          within](const Specification& s) -> std::optional<Specification> {
                const std::optional<double> score = score_of(s.problem);
                if (!score) return std::nullopt;
                const Specification plain = unmasked(s);
                std::int64_t b = -1, h = -1, i = -1;
                oracle::RowDetail row;
                return with_rules(s, rules_of(s), [&](const MaskPlace& p) {
                    const bool elsewhere = p.column < 0 || p.column >= p.len_kv;
                    if (within && (!p.in_document || elsewhere)) return -infinite;
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
                                                  const bound::Expected& truth,
                                                  const Rules& rules) {
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
        if (row < out.lse.size()) out.lse[row] = {0, 0, infinite};
        for (std::size_t c = 0; c < dim; ++c)
            out.output[row * dim + c] = mean.output[row * dim + c];
    }
    if (!any) return std::nullopt;
    return out;
}

// exp(S - m) of an f32 with m at its start where every S is below that. 104 below it is 0, whatever
// the arithmetic: half the least subnormal is exp(-103.97). Between there and 87 below, where exp
// becomes subnormal, nothing is claimed, and of such a row's log-sum-exp never. A denominator of 0
// leaves NaN, or 0 where it is guarded.
using StartOf = std::function<std::vector<double>(const Specification&, std::size_t rows)>;
std::optional<bound::Expected> maximum_from(const StartOf& start_of, double underflow,
                                            const Specification& s, const bound::Expected& truth) {
    if (s.problem.format_q == Precision::f64) return std::nullopt;
    bool any = false;
    bound::Expected out = truth;
    const std::vector<oracle::RowDetail> rows = oracle::row_details(s.problem, s.dialect, s.inputs);
    const std::vector<double> starts = start_of(s, rows.size());
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const double below = starts[row] - rows[row].max;
        if (truth.row_empty[row] != 0 || !(below > 87)) continue;
        // A sink is added behind the keys: what is left of the sum is its own weight.
        const bool sink = s.problem.sink, known = below > 104 && !sink;
        any = any || known;
        for (std::size_t n = row * dim; n < (row + 1) * dim; ++n)
            out.output[n] = known ? bound::ExpectedElement{underflow, 0, 0}
                                  : bound::ExpectedElement{0, 0, infinite};
        if (row < out.lse.size()) out.lse[row] = {0, 0, infinite};
    }
    if (!any) return std::nullopt;
    return out;
}

// exp(S) of an f32: beyond log(FLT_MAX) = 88.72 the sums are infinite and their quotient is NaN;
// where all are that small it is 0 as above. A sum of some hundred may be infinite from 80 on.
std::optional<bound::Expected> not_subtracted(double underflow, const Specification& s,
                                              const bound::Expected& truth) {
    std::optional<bound::Expected> low = maximum_from(
        [](const Specification&, std::size_t rows) { return std::vector<double>(rows, 0.0); },
        underflow, s, truth);
    if (s.problem.sink || s.problem.format_q == Precision::f64) return std::nullopt;
    bool any = low.has_value();
    bound::Expected out = low ? std::move(*low) : truth;
    const std::vector<oracle::RowDetail> rows = oracle::row_details(s.problem, s.dialect, s.inputs);
    const auto dim = static_cast<std::size_t>(value_dim(s.problem));
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (!(rows[row].max > 80)) continue;
        const bool known = rows[row].max > 89;
        any = any || known;
        for (std::size_t n = row * dim; n < (row + 1) * dim; ++n)
            out.output[n] = known ? bound::ExpectedElement{std::nan(""), 0, 0}
                                  : bound::ExpectedElement{0, 0, infinite};
        if (row < out.lse.size()) out.lse[row] = {0, 0, infinite};
    }
    if (!any) return std::nullopt;
    return out;
}

// What a quotient of two sums that are 0 gives: NaN, or 0 where it is guarded.
using WhereZero = std::function<std::optional<bound::Expected>(
    double quotient, const Specification&, const bound::Expected& truth)>;
Deviation underflowing(std::string id, std::string says, bool guarded, WhereZero expected) {
    if (guarded) id += "_guarded";
    return formula_deviation(
        std::move(id), says + " the output is " + (guarded ? "0" : "NaN"),
        [quotient = guarded ? 0.0 : std::nan(""), expected = std::move(expected)](
            const Specification& s, const bound::Expected& truth) {
            return expected(quotient, s, truth);
        });
}

Deviation maximum_not_subtracted(bool guarded) {
    return underflowing("maximum_not_subtracted",
                        "weights exp(S) without the maximum: beyond 88 they are infinite, and "
                        "where all are below -104",
                        guarded, not_subtracted);
}

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

// The largest score of all keys of the sequence or document, with nothing hidden.
std::vector<double> maxima_of_all(const Specification& s, std::size_t) {
    Rules lengths_alone;
    lengths_alone.mask_tensor = false;
    const Specification all = with_rules(s, lengths_alone);
    std::vector<double> maxima;
    for (const oracle::RowDetail& row : oracle::row_details(all.problem, all.dialect, all.inputs))
        maxima.push_back(row.max);
    return maxima;
}

Deviation maximum_of_hidden(bool guarded) {
    return underflowing(
        "maximum_of_hidden",
        "a maximum over hidden keys too: where one of them stands far above all that are seen, "
        "every weight underflows and",
        guarded, [](double quotient, const Specification& s, const bound::Expected& truth) {
            return maximum_from(maxima_of_all, quotient, s, truth);
        });
}

}  // namespace

std::vector<Deviation> hidden_deviations() {
    Deviation mean =
        formula_deviation("hidden_finite",
                          "the plain mean of all values where a query sees no key: a finite score "
                          "stands for -inf",
                          [](const Specification& s, const bound::Expected& truth) {
                              Rules rules;
                              rules.documents = rules.mask_tensor = false;
                              return mean_in_empty_rows(s, truth, rules);
                          });
    Deviation own_mean = formula_deviation(
        "hidden_finite_own",
        "the plain mean of its own document's values where a query sees no key: a finite score "
        "stands for -inf",
        [](const Specification& s, const bound::Expected& truth) {
            Rules rules;
            rules.mask_tensor = false;
            return mean_in_empty_rows(s, truth, rules);
        });
    mean.declares = [](const Specification&) -> std::string {
        return "no such rows; by design? declare dialect: empty_row mean";
    };
    Deviation of_tensor = formula_deviation(
        "tensor_finite",
        "the mean of the values that nothing but the mask tensor hides where a query sees no key: "
        "a finite score stands for its -inf",
        [](const Specification& s, const bound::Expected& truth) -> std::optional<bound::Expected> {
            if (s.problem.mask.tensor.kind == MaskKind::none) return std::nullopt;
            Rules rules = rules_of(s);
            rules.mask_tensor = false;
            return mean_in_empty_rows(s, truth, rules);
        });
    of_tensor.declares = own_mean.declares = mean.declares;
    const auto minus_cap = [](const Problem& p) -> std::optional<double> {
        if (p.softcap > 0) return -p.softcap;
        return std::nullopt;
    };
    const auto minus_1e4 = [](const Problem&) { return -1e4; };
    return {
        mean,
        own_mean,
        of_tensor,
        finite_hidden("hidden_minus_1e4", "hidden keys with score -1e4 instead of -inf", minus_1e4),
        finite_hidden("hidden_minus_1e4_own",
                      "hidden keys of a query's document with score -1e4 instead of -inf",
                      minus_1e4, true),
        finite_hidden("softcap_over_mask",
                      "the soft cap over the mask: hidden keys with score -cap", minus_cap),
        finite_hidden("softcap_over_mask_own",
                      "the soft cap over the mask: hidden keys of a query's document with score "
                      "-cap",
                      minus_cap, true),
        starting_maximum(0, false),
        starting_maximum(0, true),
        starting_maximum_and_empty(0),
    };
}

std::vector<Deviation> starting_maxima() {
    std::vector<Deviation> list;
    for (const double start : {-10.0, -50.0, -100.0, -1e3, -1e4, -5e4, -65504.0, -1e5, -1e6})
        for (const bool guarded : {false, true}) list.push_back(starting_maximum(start, guarded));
    for (const bool guarded : {false, true}) {
        list.push_back(maximum_of_hidden(guarded));
        list.push_back(maximum_not_subtracted(guarded));
    }
    return list;
}

}  // namespace attest::diagnosis
