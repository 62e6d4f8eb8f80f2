// What a kernel does where nothing has a weight: a finite score for what is hidden.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

namespace {

// Hidden keys get this score itself, not added to the one they have: a bias of score - S_ij. Not
// those that are never looked at.
Specification with_hidden_score(const Specification& s, double score,
                                const std::function<bool(const MaskPlace&)>& unseen) {
    const Specification plain = unmasked(s);
    const auto rows = rows_of(plain);
    return with_rules(s, rules_of(s), [&](const MaskPlace& p) {
        if (unseen(p)) return -infinite;
        const std::int64_t row = (p.batch * s.problem.heads_q + p.head) * s.problem.len_q + p.query;
        return score -
               (*rows)[static_cast<std::size_t>(row)].scores[static_cast<std::size_t>(p.key)];
    });
}

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
                return with_hidden_score(s, *score, [within](const MaskPlace& p) {
                    const bool elsewhere = p.column < 0 || p.column >= p.len_kv;
                    return within && (!p.in_document || elsewhere);
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

// exp(L') - exp(L) = n exp(x) of a row's log-sum-exp as it is and as it should be, and n hidden
// keys with score x: from the row where they weigh most. A whole half where it is one but for
// rounding.
std::optional<double> hidden_score(const Evidence& e, bool within) {
    if (!e.lse_wrong || e.asked.dialect.lse_base != LseBase::e) return std::nullopt;
    const auto rows = rows_of(e.asked);
    double most = 0;
    std::optional<double> score;
    for (std::size_t row = 0; row < e.truth.lse.size(); ++row) {
        const auto flat = static_cast<std::int64_t>(row);
        const std::int64_t len_q = e.asked.problem.len_q;
        const KeyExtent span =
            span_of(e.asked, flat / len_q / e.asked.problem.heads_q, flat % len_q);
        const double keys =
            static_cast<double>(within ? span.end - span.begin : e.asked.problem.len_kv);
        const double visible = static_cast<double>(
            std::ranges::count_if((*rows)[row].scores, [](double x) { return x != -infinite; }));
        const double plain = e.truth.row_empty[row] != 0 ? -infinite : e.truth.lse[row].value;
        const double seen = e.observed[Role::lse].get(flat);
        const double weight = -std::expm1(plain - seen);
        if (!std::isfinite(seen) || !(keys > visible) || !(weight > most)) continue;
        most = weight;
        score = seen + std::log(weight / (keys - visible));
    }
    if (!score) return score;
    const double half = std::round(2 * *score) / 2;
    // An LSE in f32 is known to a few times 2^-24 of itself, and n exp(x) to that by its share of
    // it.
    const double known = std::ldexp((1 + std::abs(*score)) / most, -20);
    return std::abs(*score - half) < known ? half : score;
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
    };
}

std::vector<Deviation> hidden_scores(const AllEvidence& evidence) {
    std::vector<Deviation> list;
    for (const bool within : {true, false}) {
        std::optional<double> score;
        for (const Evidence& e : evidence.wrong)
            if (!score) score = hidden_score(e, within);
        if (!score) continue;
        list.push_back(finite_hidden(
            within ? "hidden_score_own" : "hidden_score",
            fmt::format("hidden keys{} with score {:.6g} instead of -inf",
                        within ? " of a query's document" : "", *score),
            [score](const Problem&) { return score; }, within));
    }
    return list;
}

// Of what nothing else hides.
std::vector<Deviation> finite_in_tensors() {
    std::vector<Deviation> list;
    for (const bool boolean : {false, true})
        list.push_back(
            {.id = boolean ? "boolean_minus_1e4" : "tensor_minus_1e4",
             .says = std::string("keys that the ") + (boolean ? "boolean " : "") +
                     "mask tensor hides with score -1e4 instead of -inf",
             .respecify = [boolean](const Specification& s) -> std::optional<Specification> {
                 const MaskKind kind = s.problem.mask.tensor.kind;
                 if (kind == MaskKind::none || (boolean && kind != MaskKind::boolean))
                     return std::nullopt;
                 return with_hidden_score(s, -1e4, [others = rules_of(s)](const MaskPlace& p) {
                     return hidden(others, p);
                 });
             }});
    return list;
}

}  // namespace attest::diagnosis
