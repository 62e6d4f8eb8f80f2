#include "properties/diagnosis/some_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/scope.hpp"

namespace attest::diagnosis {

namespace {

/// Where a row stands; in packed documents query and lengths are those of its document.
struct AffectedRow {
    std::int64_t sequence, head, group, query, len_q, len_kv;
};

struct RowRelation {
    std::string id, says;
    std::function<bool(const AffectedRow&)> holds;
    bool of_lengths = false;  ///< mostly the same of all rows of a call
};

AffectedRow row_place(const Problem& p, std::size_t row) {
    const auto flat = static_cast<std::int64_t>(row);
    const std::int64_t b = flat / p.len_q / p.heads_q;
    AffectedRow at{b,
                   flat / p.len_q % p.heads_q,
                   group_size(p),
                   flat % p.len_q,
                   length_of(p.mask.lens_q, p.len_q, b),
                   length_of(p.mask.lens_kv, p.len_kv, b)};
    for (std::size_t n = 0; n < p.mask.documents_q.size(); ++n) {
        at.sequence = static_cast<std::int64_t>(n);
        at.len_q = p.mask.documents_q[n];
        at.len_kv = p.mask.documents_kv[n];
        if (at.query < at.len_q) break;
        at.query -= at.len_q;
    }
    return at;
}

void add_row_queries(std::vector<RowRelation>& list) {
    list.push_back({"last_row", "in the last query of a sequence",
                    [](const AffectedRow& r) { return r.query == r.len_q - 1; }});
    list.push_back({"but_last_row", "in all queries of a sequence but the last",
                    [](const AffectedRow& r) { return r.query < r.len_q - 1; }});
    for (const std::int64_t n : {2, 4, 8, 16, 32, 64, 128, 256}) {
        list.push_back({fmt::format("row_ends_{}", n),
                        fmt::format("in the last query of each {}", n),
                        [n](const AffectedRow& r) { return r.query % n == n - 1; }});
        list.push_back({fmt::format("row_begins_{}", n),
                        fmt::format("in the first query of each {}", n),
                        [n](const AffectedRow& r) { return r.query % n == 0; }});
        list.push_back({fmt::format("row_tail_{}", n),
                        fmt::format("in the queries of an incomplete last tile of {}", n),
                        [n](const AffectedRow& r) { return r.query >= r.len_q / n * n; }});
    }
    for (const std::int64_t n : {1, 2, 4, 8, 16, 32, 64, 128, 256}) {
        list.push_back({fmt::format("row_from_{}", n), fmt::format("from query {} on", n),
                        [n](const AffectedRow& r) { return r.query >= n; }});
        list.push_back({fmt::format("row_below_{}", n), fmt::format("in queries below {}", n),
                        [n](const AffectedRow& r) { return r.query < n; }});
        list.push_back({fmt::format("place_from_{}", n),
                        fmt::format("in queries at position {} and later", n),
                        [n](const AffectedRow& r) { return r.query + r.len_kv - r.len_q >= n; }});
    }
}

void add_heads_and_sequences(std::vector<RowRelation>& list) {
    for (const std::int64_t n : {1, 2, 4, 8, 16, 32, 64}) {
        list.push_back({fmt::format("head_from_{}", n), fmt::format("from head {} on", n),
                        [n](const AffectedRow& r) { return r.head >= n; }});
        list.push_back({fmt::format("sequence_from_{}", n), fmt::format("from sequence {} on", n),
                        [n](const AffectedRow& r) { return r.sequence >= n; }});
    }
    list.push_back({"head_odd", "in heads of odd numbers",
                    [](const AffectedRow& r) { return r.head % 2 == 1; }});
    list.push_back({"head_not_first", "in heads that are not the first of their group",
                    [](const AffectedRow& r) { return r.head % r.group != 0; }});
}

void add_row_lengths(std::vector<RowRelation>& list) {
    list.push_back({"no_keys", "where a sequence has no key",
                    [](const AffectedRow& r) { return r.len_kv == 0; }, true});
    for (const std::int64_t n : {2, 4, 8, 16, 32, 64, 128, 256}) {
        list.push_back({fmt::format("keys_past_{}", n),
                        fmt::format("where a sequence has one key more than a multiple of {}", n),
                        [n](const AffectedRow& r) { return r.len_kv > n && r.len_kv % n == 1; },
                        true});
        list.push_back({fmt::format("keys_whole_{}", n),
                        fmt::format("where a sequence has a multiple of {} keys", n),
                        [n](const AffectedRow& r) { return r.len_kv > 0 && r.len_kv % n == 0; },
                        true});
        list.push_back({fmt::format("keys_uneven_{}", n),
                        fmt::format("where a sequence's keys are no multiple of {}", n),
                        [n](const AffectedRow& r) { return r.len_kv % n != 0; }, true});
        list.push_back({fmt::format("keys_over_{}", n),
                        fmt::format("where a sequence has more than {} keys", n),
                        [n](const AffectedRow& r) { return r.len_kv > n; }, true});
    }
}

const std::vector<RowRelation>& relations_of_rows() {
    static const std::vector<RowRelation> list = [] {
        std::vector<RowRelation> all;
        add_row_queries(all);
        add_heads_and_sequences(all);
        add_row_lengths(all);
        return all;
    }();
    return list;
}

/// One output's elements of one row: does what was seen agree, and would the truth have?
struct RowAgreement {
    bool agrees = true, telling = false, wrong = false;

    void add(const Tensor& observed, const std::vector<bound::ExpectedElement>& predicted,
             const std::vector<bound::ExpectedElement>& truth, Precision format, std::size_t row,
             std::size_t width) {
        for (std::size_t n = row * width; n < (row + 1) * width; ++n) {
            const double seen = observed.get(static_cast<std::int64_t>(n));
            const auto differs = [format](double x, const bound::ExpectedElement& e) {
                return bound::judge(x, e, format) == bound::Agreement::disagrees;
            };
            wrong = wrong || differs(seen, truth[n]);
            if (predicted.empty()) continue;
            agrees = agrees && !differs(seen, predicted[n]);
            telling = telling || differs(round_to(truth[n].value, format), predicted[n]);
        }
    }
};

/// The rows in which a deviation is borne out, and those in which it is refuted by right numbers.
/// Rows of a call that are all of one kind are one witness of where in a call rows are wrong: what
/// parts them from those of another call may be anything that parts the calls.
struct PartedRows {
    std::vector<AffectedRow> in, out;
    std::size_t witnesses_in = 0, witnesses_out = 0;
    bool possible = true;

    void add(const Evidence& e, const bound::Expected& own) {
        const Problem& p = e.asked.problem;
        const auto width = static_cast<std::size_t>(value_dim(p));
        const std::size_t in_before = in.size(), out_before = out.size();
        for (std::size_t row = 0; possible && row < e.truth.row_empty.size(); ++row) {
            RowAgreement a;
            a.add(e.observed[Role::o], own.output, e.truth.output, p.format_o, row, width);
            if (e.observed.has(Role::lse))
                a.add(e.observed[Role::lse], own.lse, e.truth.lse, lse_format(p), row, 1);
            possible = a.agrees || !a.wrong;
            if (!a.telling) continue;
            if (a.wrong)
                in.push_back(row_place(p, row));
            else if (!a.agrees)
                out.push_back(row_place(p, row));
        }
        const std::size_t more_in = in.size() - in_before, more_out = out.size() - out_before;
        const bool both = more_in > 0 && more_out > 0;
        witnesses_in += both ? more_in : std::min<std::size_t>(more_in, 1);
        witnesses_out += both ? more_out : std::min<std::size_t>(more_out, 1);
    }
};

std::optional<PartedRows> parted(const Deviation& d, const AllEvidence& evidence) {
    PartedRows rows;
    const auto add = [&](const Evidence& e) {
        if (const auto own = predict(d, e.asked, e.truth)) rows.add(e, *own);
        return rows.possible;
    };
    if (!std::ranges::all_of(evidence.wrong, add) || rows.in.empty()) return std::nullopt;
    for (const Evidence& e : evidence.right) add(e);
    return rows;
}

const RowRelation* relation_between(const PartedRows& rows) {
    double tried = 0;
    for (const RowRelation& relation : relations_of_rows()) {
        ++tried;
        if (relation.of_lengths ? !beyond_chance(tried, rows.in.size(), rows.out.size())
                                : !beyond_chance(tried, rows.witnesses_in, rows.witnesses_out))
            continue;
        if (std::ranges::all_of(rows.in, relation.holds) &&
            std::ranges::none_of(rows.out, relation.holds))
            return &relation;
    }
    return nullptr;
}

// Elsewhere the truth.
Deviation restricted(const Deviation& d, const RowRelation& relation) {
    return {
        .id = d.id + "_" + relation.id,
        .says = d.says + ", " + relation.says,
        .formula = [d, relation](const Specification& s,
                                 const bound::Expected& truth) -> std::optional<bound::Expected> {
            std::optional<bound::Expected> own = predict(d, s, truth);
            if (!own) return std::nullopt;
            const auto width = static_cast<std::ptrdiff_t>(value_dim(s.problem));
            const auto keep = [&](auto& mine, const auto& right, std::ptrdiff_t row,
                                  std::ptrdiff_t wide) {
                if (!mine.empty())
                    std::copy_n(right.begin() + row * wide, wide, mine.begin() + row * wide);
            };
            for (std::size_t row = 0; row < truth.row_empty.size(); ++row) {
                if (relation.holds(row_place(s.problem, row))) continue;
                const auto n = static_cast<std::ptrdiff_t>(row);
                keep(own->output, truth.output, n, width);
                keep(own->lse, truth.lse, n, 1);
            }
            return own;
        },
        .declares = d.declares,
        .tells = d.tells,
        .by_parts = d.by_parts};
}

}  // namespace

std::vector<Deviation> in_some_rows(std::span<const Deviation> deviations,
                                    const AllEvidence& evidence) {
    std::vector<Deviation> list;
    for (const Deviation& d : deviations)
        if (const auto rows = parted(d, evidence))
            if (const RowRelation* relation = relation_between(*rows))
                list.push_back(restricted(d, *relation));
    return list;
}

}  // namespace attest::diagnosis
