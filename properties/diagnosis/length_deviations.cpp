// Lengths of others: of the first sequence, of queries where keys are meant, documents found where
// others begin.

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "properties/diagnosis/fitted.hpp"
#include "properties/diagnosis/respecify.hpp"

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
                const Lens queries = mask.documents_q;
                const Lens keys = mask.documents_kv;
                Rules own = rules_of(s), none;
                none.documents = none.key_lengths = false;
                none.also_hidden = [=](const MaskPlace& p) {
                    MaskPlace in = p;
                    std::int64_t first_row = 0, first_key = 0, before = 0;
                    std::size_t n = 0;
                    for (; n < queries.size() && p.query >= first_row + queries[n]; ++n) {
                        first_row += queries[n];
                        first_key += keys[n];
                    }
                    before = begin ? first_row : first_key;
                    in.in_document = n < queries.size();
                    if (!in.in_document) return true;
                    in.row = p.query - first_row;
                    in.column = p.key - before;
                    in.len_q = queries[n];
                    in.len_kv = length ? queries[n] : keys[n];
                    return hidden(own, in);
                };
                if (s.problem.alibi || s.problem.rope.style != RopeStyle::none)
                    return std::nullopt;  // where such keys stand is not known
                return with_rules(s, none);
            },
            .tells = law::Tells::visibility};
}

}  // namespace

std::vector<Deviation> mixed_lengths() {
    return {
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
