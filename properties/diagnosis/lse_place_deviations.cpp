// A log-sum-exp that is right, and stored where another row's belongs.

#include <string>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

namespace attest::diagnosis {

namespace {

/// A row of the log-sum-exp.
struct LseRow {
    std::int64_t head = 0, query = 0;
};
using RowFrom = LseRow (*)(const Problem&, LseRow to);

LseRow at_flat(std::int64_t flat, std::int64_t queries) {
    return {flat / queries, flat % queries};
}

Deviation from_other_row(std::string id, std::string says, RowFrom from) {
    return formula_deviation(
        std::move(id), std::move(says),
        [from](const Specification& s,
               const bound::Expected& truth) -> std::optional<bound::Expected> {
            const Problem& p = s.problem;
            bound::Expected out;
            if (truth.lse.empty()) return std::nullopt;
            bool differs = false;
            const auto flat = [&p](std::int64_t b, LseRow r) {
                return static_cast<std::size_t>((b * p.heads_q + r.head) * p.len_q + r.query);
            };
            out.lse = truth.lse;
            for (std::int64_t b = 0; b < p.batch; ++b)
                for (std::int64_t h = 0; h < p.heads_q; ++h)
                    for (std::int64_t i = 0; i < p.len_q; ++i) {
                        const LseRow own{h, i}, other = from(p, own);
                        differs = differs || other.head != h || other.query != i;
                        out.lse[flat(b, own)] = truth.lse[flat(b, other)];
                    }
            return differs ? std::optional(std::move(out)) : std::nullopt;
        });
}

}  // namespace

std::vector<Deviation> lse_in_other_rows() {
    return {
        from_other_row(
            "lse_in_packed_order", "a log-sum-exp stored query by query for all heads of a group",
            [](const Problem& p, LseRow to) {
                const std::int64_t group = group_size(p), first = to.head / group * group;
                const std::int64_t flat = (to.head - first) * p.len_q + to.query;
                return LseRow{first + flat % group, flat / group};
            }),
        from_other_row("lse_taken_in_packed_order",
                       "a log-sum-exp stored as if it were held query by query for all heads of a "
                       "group",
                       [](const Problem& p, LseRow to) {
                           const std::int64_t group = group_size(p),
                                              first = to.head / group * group;
                           const std::int64_t flat = to.query * group + to.head - first;
                           const LseRow own = at_flat(flat, p.len_q);
                           return LseRow{first + own.head, own.query};
                       }),
        from_other_row("lse_query_by_query", "a log-sum-exp stored query by query for all heads",
                       [](const Problem& p, LseRow to) {
                           const std::int64_t flat = to.head * p.len_q + to.query;
                           return LseRow{flat % p.heads_q, flat / p.heads_q};
                       }),
        from_other_row("lse_of_first_head", "the log-sum-exp of the first head for all of them",
                       [](const Problem&, LseRow to) {
                           return LseRow{0, to.query};
                       }),
        from_other_row("lse_of_key_head", "the log-sum-exp of the head with the key head's number",
                       [](const Problem& p, LseRow to) {
                           return LseRow{to.head / group_size(p), to.query};
                       }),
        from_other_row("lse_of_group_first", "the log-sum-exp of the first head of its group",
                       [](const Problem& p, LseRow to) {
                           return LseRow{to.head / group_size(p) * group_size(p), to.query};
                       }),
    };
}

}  // namespace attest::diagnosis
