// Lengths of others: of the first sequence, of queries where keys are meant, documents found where
// others begin.

#include <algorithm>
#include <string>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"
#include "properties/diagnosis/row_weights.hpp"

namespace attest::diagnosis {

namespace {

using Lens = std::vector<std::int64_t>;

Deviation other_lengths(Role role, std::string id, std::string says,
                        void (*change)(Lens& lens, const Specification& s)) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [role, change](const Specification& s) -> std::optional<Specification> {
                Specification out = s;
                Mask& mask = out.problem.mask;
                Lens& lens = role == Role::lens_q ? mask.lens_q : mask.lens_kv;
                if (lens.empty() || s.problem.cache.present) return std::nullopt;
                change(lens, s);
                const std::int64_t axis = role == Role::lens_q ? s.problem.len_q : s.problem.len_kv;
                for (std::size_t b = 0; b < lens.size(); ++b) {
                    lens[b] = std::min(lens[b], axis);
                    out.inputs[role].set(static_cast<std::int64_t>(b),
                                         static_cast<double>(lens[b]));
                }
                return out.problem == s.problem ? std::nullopt : std::optional(std::move(out));
            },
            .tells = law::Tells::visibility};
}

void one_less(Lens& lens, const Specification&) {
    for (std::int64_t& n : lens) n = std::max<std::int64_t>(n - 1, 0);
}
void of_next(Lens& lens, const Specification&) {
    std::rotate(lens.begin(), lens.begin() + 1, lens.end());
}
void of_first(Lens& lens, const Specification&) {
    std::fill(lens.begin(), lens.end(), lens.front());
}
void of_largest(Lens& lens, const Specification&) {
    std::fill(lens.begin(), lens.end(), *std::ranges::max_element(lens));
}

// Document n's keys looked for from where its queries begin, or its queries' number of them.
Deviation keys_of_documents(std::string id, std::string says, bool begin, bool length) {
    return {.id = std::move(id),
            .says = std::move(says),
            .respecify = [begin, length](const Specification& s) -> std::optional<Specification> {
                const Mask& mask = s.problem.mask;
                if (mask.documents_q.empty() || mask.documents_q == mask.documents_kv)
                    return std::nullopt;
                if (has_positions(s.problem))
                    return std::nullopt;  // where such keys stand is not known
                const Rules own = rules_of(s);
                Rules none = own;
                none.causal = none.documents = none.key_lengths = false;
                none.window = {};
                none.also_hidden = [&s, begin, length, own](const MaskPlace& p) {
                    const auto [queries, keys] = segment_of(s.problem, p.batch, p.query);
                    MaskPlace in = p;
                    in.in_document = queries.begin < queries.end;
                    in.row = p.query - queries.begin;
                    in.column = p.key - (begin ? queries.begin : keys.begin);
                    in.len_q = queries.end - queries.begin;
                    in.len_kv = length ? in.len_q : keys.end - keys.begin;
                    return hidden(own, in);
                };
                return with_rules(s, none);
            },
            .tells = law::Tells::visibility};
}

/// The first document that begins with this query, empty or not.
SegmentExtent first_document_at(const Mask& mask, std::int64_t query) {
    std::int64_t first = 0, key = 0;
    std::size_t n = 0;
    for (; first < query; ++n) first += mask.documents_q[n], key += mask.documents_kv[n];
    return {{first, first + mask.documents_q[n]}, {key, key + mask.documents_kv[n]}};
}

/// The query and key counted in that document, of a first query; else in the query's own.
MaskPlace in_first_document(const Specification& s, const MaskPlace& p) {
    SegmentExtent found = segment_of(s.problem, p.batch, p.query);
    MaskPlace in = p;
    in.in_document = found.queries.begin < found.queries.end;
    if (in.in_document && p.query == found.queries.begin)
        found = first_document_at(s.problem.mask, p.query);
    in.row = p.query - found.queries.begin;
    in.column = p.key - found.keys.begin;
    in.len_q = found.queries.end - found.queries.begin;
    in.len_kv = found.keys.end - found.keys.begin;
    return in;
}

// As where a search by the documents' beginnings finds the first of several that are alike.
std::optional<Specification> first_query_in_empty_document(const Specification& s) {
    const Problem& problem = s.problem;
    if (problem.mask.documents_q.empty() || problem.rope.style != RopeStyle::none)
        return std::nullopt;
    const Rules own = rules_of(s);
    Rules none = own;
    none.causal = none.documents = none.key_lengths = false;
    none.window = {};
    bool differs = false;
    none.also_hidden = [&](const MaskPlace& p) {
        const MaskPlace in = in_first_document(s, p);
        differs = differs || (in.in_document && in.len_q == 0);
        return hidden(own, in);
    };
    Specification out =
        problem.alibi ? with_distances(s, none,
                                       [&s](const MaskPlace& p) {
                                           const MaskPlace in = in_first_document(s, p);
                                           return static_cast<double>(
                                               std::abs(in.row + before_row(s, in) - in.column));
                                       })
                      : with_rules(s, none);
    return differs ? std::optional(std::move(out)) : std::nullopt;
}

// As of batches padded on the left: the keys of a sequence are the last ones of the axis, and so
// are their places in a mask. Positions count from the first of them.
std::optional<Specification> keys_at_the_end(const Specification& s) {
    const Problem& p = s.problem;
    if (!has_key_lengths(s) || p.cache.present) return std::nullopt;
    Specification out = s;
    const auto moved = [&](std::int64_t b, std::int64_t j) {
        const std::int64_t keys = length_of(p.mask.lens_kv, p.len_kv, b);
        return j < keys ? p.len_kv - keys + j : j;
    };
    for (const Role role : {Role::k, Role::v}) {
        const Tensor& t = s.inputs[role];
        out.inputs.put(role, remake(t.type(), t.shape(),
                                    [&](std::int64_t b, std::int64_t h, std::int64_t j,
                                        std::int64_t c) { return t.at(b, h, moved(b, j), c); }));
    }
    if (p.mask.tensor.kind == MaskKind::none) return out;
    const Tensor& mask = s.inputs[Role::mask];
    const Shape shape{p.batch, mask.shape()[1], mask.shape()[2], p.len_kv};
    out.inputs.put(Role::mask,
                   remake(mask.type(), shape,
                          [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
                              return mask.broadcast_at(b, h, i, moved(b, j));
                          }));
    out.problem.mask.tensor.shared_batch = out.problem.mask.tensor.shared_keys = false;
    return out;
}

// The sum of a sequence's values over the number of keys of the axis, where the dialect has their
// mean for a query that sees none.
std::optional<bound::Expected> means_by_axis(const Specification& s, const bound::Expected& truth) {
    const Problem& p = s.problem;
    if (s.dialect.empty_row != EmptyRow::mean || p.mask.lens_kv.empty()) return std::nullopt;
    const auto dim = static_cast<std::size_t>(value_dim(p));
    bool any = false;
    bound::Expected out = truth;
    for (std::size_t row = 0; row < truth.row_empty.size(); ++row) {
        const std::int64_t b = static_cast<std::int64_t>(row) / p.len_q / p.heads_q;
        const double share = static_cast<double>(p.mask.lens_kv[static_cast<std::size_t>(b)]) /
                             static_cast<double>(std::max<std::int64_t>(p.len_kv, 1));
        if (truth.row_empty[row] == 0 || share == 1) continue;
        any = true;
        for (std::size_t n = row * dim; n < (row + 1) * dim; ++n) out.output[n].value *= share;
    }
    return any ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

std::vector<Deviation> mixed_lengths() {
    return {
        formula_deviation("empty_mean_by_axis",
                          "the sum of a sequence's values over the number of keys of the axis, not "
                          "its own, where a query sees no key",
                          means_by_axis),
        {.id = "documents_empty_take_first_query",
         .says = "the first query behind an empty document as one of that document",
         .respecify = first_query_in_empty_document,
         .tells = law::Tells::visibility},
        {.id = "key_lengths_from_the_end",
         .says = "each sequence's last keys on the axis in place of its first, as where padding "
                 "stands on the left",
         .respecify = keys_at_the_end,
         .tells = law::Tells::visibility},
        other_lengths(Role::lens_q, "query_lengths_of_first",
                      "the number of queries of the first sequence for all of them", of_first),
        other_lengths(Role::lens_q, "query_lengths_of_next",
                      "the number of queries of the next sequence", of_next),
        other_lengths(Role::lens_q, "query_lengths_less", "one query fewer of each sequence",
                      one_less),
        other_lengths(Role::lens_kv, "key_lengths_of_next",
                      "the number of keys of the next sequence", of_next),
        other_lengths(Role::lens_kv, "key_lengths_of_largest",
                      "the number of keys of the longest sequence for all of them", of_largest),
        other_lengths(Role::lens_kv, "key_lengths_less",
                      "one key fewer of each sequence that has a length", one_less),
        other_lengths(Role::lens_kv, "key_lengths_of_queries",
                      "each sequence's number of queries for its number of keys",
                      [](Lens& lens, const Specification& s) {
                          for (std::size_t b = 0; b < lens.size(); ++b)
                              lens[b] = length_of(s.problem.mask.lens_q, s.problem.len_q,
                                                  static_cast<std::int64_t>(b));
                      }),
        keys_of_documents("documents_from_queries",
                          "a document's keys from where its queries begin", true, false),
        keys_of_documents("documents_of_queries",
                          "cumulative lengths of queries taken for those of keys", true, true),
        keys_of_documents("documents_as_long_as_queries",
                          "as many keys of a document as it has queries", false, true),
    };
}

}  // namespace attest::diagnosis
