#include "reference/oracle/visibility.hpp"

#include <algorithm>

namespace attest::oracle {

namespace {

std::int64_t length(const std::vector<std::int64_t>& lens, std::int64_t batch, std::int64_t full) {
    return lens.empty() ? full : std::min(full, lens[static_cast<std::size_t>(batch)]);
}

/// `exclusive` admits distances strictly below a positive limit.
std::int64_t reach(std::int64_t limit, WindowEnds ends) {
    return ends == WindowEnds::exclusive && limit > 0 ? limit - 1 : limit;
}

}  // namespace

std::int64_t keys_valid(const Problem& problem, std::int64_t batch) {
    return length(problem.mask.lens_kv, batch, problem.len_kv);
}

KeyRange keys_of(const Problem& problem, const Dialect& dialect, std::int64_t batch,
                 std::int64_t query) {
    const Mask& mask = problem.mask;
    std::int64_t queries = length(mask.lens_q, batch, problem.len_q);
    const std::int64_t valid = keys_valid(problem, batch);
    std::int64_t keys = valid;
    KeyRange range;
    range.is_query = query < queries;
    if (!range.is_query) return range;

    std::int64_t row = query;
    if (!mask.documents_q.empty()) {
        std::size_t document = 0;
        while (document < mask.documents_q.size() && row >= mask.documents_q[document]) {
            row -= mask.documents_q[document];
            range.key_base += mask.documents_kv[document];
            ++document;
        }
        if (document == mask.documents_q.size()) return range;  // past the last document
        queries = mask.documents_q[document];
        keys = mask.documents_kv[document];
    }
    const bool right = dialect.causal == CausalAlignment::bottom_right || problem.cache.present;
    range.position = row + (right ? keys - queries : 0);

    std::int64_t first = 0, last = keys;  // within the document
    if (mask.causal) last = std::min(last, range.position + 1);
    if (mask.window.left >= 0)
        first = std::max(first, range.position - reach(mask.window.left, dialect.window_ends));
    if (mask.window.right >= 0)
        last = std::min(last, range.position + reach(mask.window.right, dialect.window_ends) + 1);
    range.first = range.key_base + first;
    range.last = std::min(range.key_base + last, valid);
    return range;
}

std::int64_t key_position(const Problem& problem, std::int64_t key) {
    for (const std::int64_t document : problem.mask.documents_kv) {
        if (key < document) return key;
        key -= document;
    }
    return key;
}

}  // namespace attest::oracle
