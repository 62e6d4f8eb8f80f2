#include "properties/diagnosis/backward_some_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "properties/diagnosis/diagnose_backward.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/scope.hpp"
#include "properties/law/compare.hpp"
#include "properties/law/gradient_run.hpp"

namespace attest::diagnosis {

namespace {

/// A row of a gradient: of a query in dQ, of a key in dK and dV, a head's number of sinks and
/// slopes.
struct PlaceOfGradient {
    std::int64_t sequence = 0, head = 0, at = 0, length = 0;
    std::int64_t member = 0;  ///< of its group; 0 for a key head
    bool unseen = false;      ///< a query that sees no key, a key that no query sees
};

struct GradientRowRelation {
    std::string id, says;
    std::function<bool(const PlaceOfGradient&)> holds;
};

/// In packed documents row and length are those of its document.
void count_in_document(PlaceOfGradient& row, const std::vector<std::int64_t>& documents) {
    for (std::size_t n = 0; n < documents.size(); ++n) {
        row.sequence = static_cast<std::int64_t>(n);
        row.length = documents[n];
        if (row.at < row.length) return;
        row.at -= row.length;
    }
}

/// None of a bias, whose rows are other rows' sums.
std::optional<PlaceOfGradient> gradient_row(const BackwardCall& call, Role role,
                                            std::int64_t flat) {
    const Problem& p = call.problem();
    if (role == Role::d_sinks || role == Role::d_slopes)
        return PlaceOfGradient{.head = flat, .length = p.len_q, .member = flat % call.call.group};
    if (role == Role::d_q) {
        const std::int64_t b = flat / p.len_q / p.heads_q, h = flat / p.len_q % p.heads_q,
                           i = flat % p.len_q;
        PlaceOfGradient row{b,
                            h,
                            i,
                            length_of(p.mask.lens_q, p.len_q, b),
                            h % call.call.group,
                            !call.sees_any(b, h, i)};
        count_in_document(row, p.mask.documents_q);
        return row;
    }
    if (role != Role::d_k && role != Role::d_v) return std::nullopt;
    const std::int64_t b = flat / p.len_kv / p.heads_kv, h = flat / p.len_kv % p.heads_kv,
                       j = flat % p.len_kv;
    PlaceOfGradient row{b, h, j, length_of(p.mask.lens_kv, p.len_kv, b), 0, !call.is_seen(b, h, j)};
    count_in_document(row, p.mask.documents_kv);
    return row;
}

void add_tiles(std::vector<GradientRowRelation>& list) {
    for (const std::int64_t n : {2, 4, 8, 16, 32, 64, 128}) {
        const auto add = [&list, n](const char* id, const char* says, auto holds) {
            list.push_back({fmt::format("{}_{}", id, n), fmt::format(fmt::runtime(says), n),
                            [n, holds](const PlaceOfGradient& r) { return holds(r, n); }});
        };
        using Count = std::int64_t;
        add("tail", "in an incomplete last tile of {} rows",
            [](const PlaceOfGradient& r, Count tile) { return r.at >= r.length / tile * tile; });
        add("tail_past", "in an incomplete last tile of {} rows, where there are more",
            [](const PlaceOfGradient& r, Count tile) {
                return r.length > tile && r.at >= r.length / tile * tile;
            });
        add("last_tile", "in the last tile of {} rows", [](const PlaceOfGradient& r, Count tile) {
            return r.at / tile == (r.length - 1) / tile;
        });
        add("ends", "in the last of each {} rows",
            [](const PlaceOfGradient& r, Count tile) { return r.at % tile == tile - 1; });
        add("begins", "in the first of each {} rows",
            [](const PlaceOfGradient& r, Count tile) { return r.at % tile == 0; });
        add("from", "from row {} on",
            [](const PlaceOfGradient& r, Count first) { return r.at >= first; });
        add("below", "in rows below {}",
            [](const PlaceOfGradient& r, Count end) { return r.at < end; });
    }
}

const std::vector<GradientRowRelation>& relations_of_gradient_rows() {
    static const std::vector<GradientRowRelation> list = [] {
        std::vector<GradientRowRelation> all{
            {"unseen", "in rows of queries that see no key and of keys that none sees",
             [](const PlaceOfGradient& r) { return r.unseen && r.at < r.length; }},
            {"past_length", "in rows past a sequence's length",
             [](const PlaceOfGradient& r) { return r.at >= r.length; }},
            {"member_not_first", "in heads that are not the first of their group",
             [](const PlaceOfGradient& r) { return r.member != 0; }},
            {"member_first", "in the first head of each group",
             [](const PlaceOfGradient& r) { return r.member == 0; }},
            {"head_not_first", "in all heads but the first",
             [](const PlaceOfGradient& r) { return r.head > 0; }},
            {"head_odd", "in heads of odd numbers",
             [](const PlaceOfGradient& r) { return r.head % 2 == 1; }},
            {"sequence_not_first", "in all sequences but the first",
             [](const PlaceOfGradient& r) { return r.sequence > 0; }},
            {"last_row", "in the last row of a sequence",
             [](const PlaceOfGradient& r) { return r.at == r.length - 1; }},
            {"first_row", "in the first row of a sequence",
             [](const PlaceOfGradient& r) { return r.at == 0; }}};
        add_tiles(all);
        return all;
    }();
    return list;
}

/// Of one row, element by element, what a deviation says of it.
struct GradientRowAgreement {
    bool agrees = true, telling = false, wrong = false;

    void add(double seen, const bound::ExpectedElement& predicted,
             const bound::ExpectedElement& truth, Precision format) {
        wrong = wrong || outside(seen, truth, format);
        agrees = agrees && !outside(seen, predicted, format);
        telling = telling || outside(round_to(truth.value, format), predicted, format);
    }
};

/// As forward's (some_rows.cpp): rows of a gradient that are all of one kind are one witness.
struct PartedGradientRows {
    std::vector<PlaceOfGradient> in, out;
    std::size_t witnesses_in = 0, witnesses_out = 0;
    bool possible = true;

    void add(const BackwardEvidence& e, const bound::ExpectedGradients& own, Role role) {
        const std::vector<bound::ExpectedElement>& predicted = own[role];
        if (!e.observed.has(role) || predicted.empty()) return;
        const Tensor& seen = e.observed[role];
        const Precision format = law::gradient_format(e.asked.problem, role);
        const std::int64_t width = seen.shape()[3];
        const std::size_t in_before = in.size(), out_before = out.size();
        for (std::int64_t row = 0; possible && row * width < seen.size(); ++row) {
            const auto place = gradient_row(*e.call, role, row);
            if (!place) return;
            GradientRowAgreement a;
            for (std::int64_t n = row * width; n < (row + 1) * width; ++n) {
                const auto at = static_cast<std::size_t>(n);
                a.add(seen.get(n), predicted[at], e.truth[role][at], format);
            }
            possible = !a.wrong || (a.agrees && a.telling);
            if (!a.telling) continue;
            if (a.wrong)
                in.push_back(*place);
            else if (!a.agrees)
                out.push_back(*place);
        }
        const std::size_t more_in = in.size() - in_before, more_out = out.size() - out_before;
        const bool both = more_in > 0 && more_out > 0;
        witnesses_in += both ? more_in : std::min<std::size_t>(more_in, 1);
        witnesses_out += both ? more_out : std::min<std::size_t>(more_out, 1);
    }
};

std::optional<PartedGradientRows> parted_rows(const BackwardDeviation& d,
                                              const AllBackwardEvidence& evidence,
                                              const std::vector<Role>& roles) {
    PartedGradientRows rows;
    const auto add = [&](const BackwardEvidence& e) {
        if (const auto own = predict(d, e))
            for (const Role role : roles) rows.add(e, *own, role);
        return rows.possible;
    };
    if (!std::ranges::all_of(evidence.wrong, add) || rows.in.empty()) return std::nullopt;
    for (const BackwardEvidence& e : evidence.right) add(e);
    return rows;
}

const GradientRowRelation* parting_relation(const PartedGradientRows& rows) {
    double tried = 0;
    for (const GradientRowRelation& relation : relations_of_gradient_rows()) {
        ++tried;
        if (!beyond_chance(tried, rows.witnesses_in, rows.witnesses_out)) return nullptr;
        if (std::ranges::all_of(rows.in, relation.holds) &&
            std::ranges::none_of(rows.out, relation.holds))
            return &relation;
    }
    return nullptr;
}

/// Elsewhere the right numbers.
BackwardDeviation restricted_to(const BackwardDeviation& d, const GradientRowRelation& relation) {
    BackwardDeviation some = d;
    some.id = d.id + "_" + relation.id;
    some.says = d.says + ", " + relation.says;
    some.change = [d, relation](const BackwardCall& asked, ModelSteps& s) {
        if (d.change) d.change(asked, s);
        s.afterwards = [inner = s.afterwards, relation](const BackwardCall& call, Predicted& out) {
            if (inner) inner(call, out);
            Predicted right = run_backward(call, {});
            for (auto& [role, numbers] : out.of) {
                if (numbers.empty()) continue;
                const std::int64_t width = shape_of(call.problem(), role).value()[3];
                for (std::size_t n = 0; n < numbers.size(); ++n) {
                    const auto place =
                        gradient_row(call, role, static_cast<std::int64_t>(n) / width);
                    if (!place || !relation.holds(*place)) numbers[n] = right[role][n];
                }
            }
        };
    };
    return some;
}

/// NaN by itself is not among the deviations: where it is everywhere, that is told otherwise.
BackwardDeviation nan_gradients() {
    return {.id = "nan_gradients", .says = "NaN", .change = [](const BackwardCall&, ModelSteps& s) {
                s.afterwards = [](const BackwardCall&, Predicted& out) {
                    for (auto& [role, numbers] : out.of)
                        for (Near& x : numbers) x = {std::nan(""), 0};
                };
            }};
}

}  // namespace

std::vector<BackwardDeviation> in_some_gradient_rows(const AllBackwardEvidence& evidence,
                                                     const std::vector<Role>& wrong_roles) {
    std::vector<BackwardDeviation> list;
    const auto add = [&](const BackwardDeviation& d) {
        if (d.respecify || d.keeps) return;  // the right numbers beside it are of this call
        if (const auto rows = parted_rows(d, evidence, wrong_roles))
            if (const GradientRowRelation* relation = parting_relation(*rows))
                list.push_back(restricted_to(d, *relation));
    };
    add(nan_gradients());
    std::ranges::for_each(backward_deviations(), add);
    return list;
}

}  // namespace attest::diagnosis
