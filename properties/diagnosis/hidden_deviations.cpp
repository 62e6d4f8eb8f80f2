// What a kernel does where nothing has a weight: a finite score for what is hidden.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

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
                        std::function<std::optional<double>(const Specification&)> score_of,
                        bool within = false) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [score_of = std::move(score_of),
                          within](const Specification& s) -> std::optional<Specification> {
                const std::optional<double> score = score_of(s);
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

// A cap that stands behind the bias makes -cap of what lies as many caps below; of what lies much
// further its argument is not known well enough in double.
std::optional<double> minus_cap(const Specification& s) {
    constexpr double caps = 1e6;
    if (!(s.problem.softcap > 0)) return std::nullopt;
    return -s.problem.softcap * (s.dialect.softcap == SoftcapPlace::after_bias ? caps : 1);
}

std::optional<double> minus_1e4(const Specification&) {
    return -1e4;
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
            [score](const Specification&) { return score; }, within));
    }
    return list;
}

namespace {

/// A tile of so many queries and keys of which a mask tensor hides all; asked key by key.
class HiddenTiles {
public:
    HiddenTiles(const Specification& s, std::int64_t tile) : s_(s), tile_(tile) {}

    bool operator()(const MaskPlace& p) {
        const std::array at{p.batch, p.head, p.row / tile_, p.column / tile_};
        const auto [known, is_new] = hidden_.try_emplace(at, true);
        for (std::int64_t i = at[2] * tile_; is_new && i < std::min((at[2] + 1) * tile_, p.len_q);
             ++i)
            for (std::int64_t j = at[3] * tile_; j < std::min((at[3] + 1) * tile_, p.len_kv); ++j) {
                MaskPlace other = p;
                other.query += i - p.row;
                other.key += j - p.column;
                known->second = known->second && mask_value(s_, other) == -infinite;
            }
        return known->second;
    }

private:
    const Specification& s_;
    std::int64_t tile_;
    std::map<std::array<std::int64_t, 4>, bool> hidden_;
};

/// What a tensor of this kind hides, and nothing else does, has this score; but not in tiles that
/// it hides wholly (0: in those too).
struct ScoreOfHidden {
    const char *id, *says;
    std::optional<double> (*score)(const Specification&);
    MaskKind kind = MaskKind::none;  ///< none: of any kind
};
constexpr ScoreOfHidden scores_of_hidden[] = {
    {"tensor_minus_1e4", "keys that the mask tensor hides with score -1e4 instead of -inf",
     minus_1e4},
    {"boolean_minus_1e4", "keys that the boolean mask tensor hides with score -1e4 instead of -inf",
     minus_1e4, MaskKind::boolean},
    {"softcap_over_tensor", "the soft cap over the mask tensor's -inf: such keys with score -cap",
     minus_cap},
    {"softcap_over_additive",
     "the soft cap over an additive mask's -inf: such keys with score -cap", minus_cap,
     MaskKind::additive},
};

Deviation of_tensor(const ScoreOfHidden& what, std::int64_t tile) {
    Deviation d{.id = what.id,
                .says = what.says,
                .respecify = [&what, tile](const Specification& s) -> std::optional<Specification> {
                    const MaskKind kind = s.problem.mask.tensor.kind;
                    const std::optional<double> score = what.score(s);
                    if (!score || kind == MaskKind::none) return std::nullopt;
                    if (what.kind != MaskKind::none && kind != what.kind) return std::nullopt;
                    return with_hidden_score(
                        s, *score,
                        [tile, others = rules_of(s),
                         wholly = HiddenTiles(s, tile)](const MaskPlace& p) mutable {
                            return hidden(others, p) || (tile > 0 && wholly(p));
                        });
                }};
    if (tile == 0) return d;
    d.id += fmt::format("_tiles_{}", tile);
    d.says += fmt::format(", but not in tiles of {0} x {0} that it hides wholly", tile);
    return as_form_of(what.id, std::move(d));
}

}  // namespace

std::vector<Deviation> finite_in_tensors() {
    std::vector<Deviation> list;
    for (const ScoreOfHidden& what : scores_of_hidden)
        for (const std::int64_t tile : {0, 16, 32, 64, 128}) list.push_back(of_tensor(what, tile));
    return list;
}

}  // namespace attest::diagnosis
