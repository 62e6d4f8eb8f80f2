// A finite score for what is hidden, instead of -inf: it shows where those of what is seen are as
// low.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"
#include "properties/diagnosis/rows_of.hpp"

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

std::vector<Deviation> hidden_at_scores() {
    return {
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

/// Of queries and keys; 0: none.
struct Tiles {
    std::int64_t queries = 0, keys = 0;
};

/// Tiles in which all is hidden: by the mask tensor, or by whatever hides. Asked key by key.
class HiddenTiles {
public:
    HiddenTiles(const Specification& s, Tiles tiles, bool by_any)
        : s_(s), tiles_(tiles), by_any_(by_any), rules_(rules_of(s)) {}

    bool operator()(const MaskPlace& p) {
        if (tiles_.keys == 0) return false;
        const std::array at{p.batch, p.head, p.row / tiles_.queries, p.column / tiles_.keys};
        const auto [known, is_new] = hidden_.try_emplace(at, true);
        const std::int64_t i = at[2] * tiles_.queries, j = at[3] * tiles_.keys;
        for (std::int64_t row = i; is_new && row < std::min(i + tiles_.queries, p.len_q); ++row)
            for (std::int64_t key = j; key < std::min(j + tiles_.keys, p.len_kv); ++key)
                known->second = known->second && is_hidden(p, row, key);
        return known->second;
    }

private:
    bool is_hidden(MaskPlace p, std::int64_t row, std::int64_t column) const {
        p.query += row - p.row;
        p.key += column - p.column;
        p.row = row;
        p.column = column;
        return (by_any_ && hidden(rules_, p)) || (has_mask(s_) && mask_value(s_, p) == -infinite);
    }

    const Specification& s_;
    Tiles tiles_;
    bool by_any_;
    Rules rules_;
    std::map<std::array<std::int64_t, 4>, bool> hidden_;
};

/// What has this score.
enum class HiddenBy : std::uint8_t { anything, tensor, boolean, additive };

struct ScoreOfHidden {
    const char *id, *says;
    std::optional<double> (*score)(const Specification&);
    HiddenBy by;
};
/// The more particular first.
constexpr ScoreOfHidden scores_of_hidden[] = {
    {"boolean_minus_1e4", "keys that the boolean mask tensor hides with score -1e4 instead of -inf",
     minus_1e4, HiddenBy::boolean},
    {"tensor_minus_1e4", "keys that the mask tensor hides with score -1e4 instead of -inf",
     minus_1e4, HiddenBy::tensor},
    {"hidden_minus_1e4_own", "hidden keys of a query's document with score -1e4 instead of -inf",
     minus_1e4, HiddenBy::anything},
    {"softcap_over_tensor", "the soft cap over the mask tensor's -inf: such keys with score -cap",
     minus_cap, HiddenBy::tensor},
    {"softcap_over_additive",
     "the soft cap over an additive mask's -inf: such keys with score -cap", minus_cap,
     HiddenBy::additive},
};

bool hides(HiddenBy by, const Specification& s) {
    const MaskKind kind = s.problem.mask.tensor.kind;
    if (by == HiddenBy::boolean) return kind == MaskKind::boolean;
    if (by == HiddenBy::additive) return kind == MaskKind::additive;
    return by == HiddenBy::anything || kind != MaskKind::none;
}

bool sees_none(const oracle::RowDetail& row) {
    return std::ranges::all_of(row.scores, [](double x) { return x == -infinite; });
}

/// Whether beside such a score anything that is seen weighs little.
bool shows(const Specification& s, double score, bool empty_rows_right) {
    constexpr double little = 40;  // exp(-40) is nothing beside 1
    return std::ranges::any_of(*rows_of(s), [&](const oracle::RowDetail& row) {
        if (sees_none(row)) return !empty_rows_right;
        return *std::ranges::max_element(row.scores) < score + little;
    });
}

/// Rows without a key are as they should be, or have keys of that score like all others.
Deviation at_score(const ScoreOfHidden& what, Tiles tiles, bool empty_rows_right) {
    Deviation d{
        .id = what.id,
        .says = what.says,
        .respecify = [&what, tiles,
                      empty_rows_right](const Specification& s) -> std::optional<Specification> {
            const std::optional<double> score = what.score(s);
            if (!score || !hides(what.by, s) || !shows(s, *score, empty_rows_right))
                return std::nullopt;
            const bool by_any = what.by == HiddenBy::anything;
            return with_hidden_score(
                s, *score,
                [&s, by_any, empty_rows_right, others = rules_of(s), rows = rows_of(s),
                 wholly = HiddenTiles(s, tiles, by_any)](const MaskPlace& p) mutable {
                    const bool elsewhere = !p.in_document || p.column < 0 || p.column >= p.len_kv;
                    if (by_any ? elsewhere : hidden(others, p)) return true;
                    const std::int64_t row =
                        (p.batch * s.problem.heads_q + p.head) * s.problem.len_q + p.query;
                    if (empty_rows_right && sees_none((*rows)[static_cast<std::size_t>(row)]))
                        return true;
                    return wholly(p);
                });
        }};
    if (tiles.keys > 0) {
        d.id += fmt::format("_tiles_{}_{}", tiles.queries, tiles.keys);
        d.says += fmt::format(", but not in tiles of {} x {} that are hidden wholly", tiles.queries,
                              tiles.keys);
    }
    if (empty_rows_right) {
        d.id += "_seen";
        d.says += ", where a query sees a key";
    }
    return d.id == what.id ? d : as_form_of(what.id, std::move(d));
}

}  // namespace

std::vector<Deviation> hidden_at_scores_in_part() {
    std::vector<Deviation> list;
    for (const ScoreOfHidden& what : scores_of_hidden)
        for (const Tiles tiles : {Tiles{},
                                  {16, 16},
                                  {32, 32},
                                  {64, 64},
                                  {128, 128},
                                  {16, 32},
                                  {16, 64},
                                  {32, 64},
                                  {64, 32},
                                  {64, 128},
                                  {128, 64}})
            for (const bool empty_rows_right : {false, true})
                list.push_back(at_score(what, tiles, empty_rows_right));
    std::erase_if(list, [](const Deviation& d) {
        return d.id == "hidden_minus_1e4_own";  // hidden_at_scores() has it
    });
    return list;
}

}  // namespace attest::diagnosis
