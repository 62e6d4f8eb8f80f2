#include "properties/law/visibility.hpp"

#include <cmath>
#include <limits>

namespace attest::law {

namespace {

std::vector<std::int64_t> starts(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int64_t> result;
    std::int64_t begin = 0;
    for (const std::int64_t length : lengths) {
        result.push_back(begin);
        begin += length;
    }
    return result;
}

std::vector<std::int64_t> members(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int64_t> result;
    for (std::size_t d = 0; d < lengths.size(); ++d)
        result.insert(result.end(), static_cast<std::size_t>(lengths[d]),
                      static_cast<std::int64_t>(d));
    return result;
}

/// The window's reach as inclusive distances; `exclusive` ends admit distances below a positive
/// limit only, and a limit of 0 admits distance 0 either way.
std::int64_t reach(std::int64_t limit, WindowEnds ends) {
    if (limit < 0) return std::numeric_limits<std::int64_t>::max() / 4;
    return ends == WindowEnds::exclusive && limit > 0 ? limit - 1 : limit;
}

}  // namespace

Visibility::Visibility(const Problem& problem, const Dialect& dialect, const TensorSet& inputs)
    : problem_(&problem),
      dialect_(&dialect),
      mask_(problem.mask.tensor.kind != MaskKind::none ? &inputs[Role::mask] : nullptr),
      document_q_(members(problem.mask.documents_q)),
      document_kv_(members(problem.mask.documents_kv)),
      start_q_(starts(problem.mask.documents_q)),
      start_kv_(starts(problem.mask.documents_kv)) {}

std::int64_t Visibility::length_q(std::int64_t batch) const {
    const auto& lens = problem_->mask.lens_q;
    return lens.empty() ? problem_->len_q : lens[static_cast<std::size_t>(batch)];
}

std::int64_t Visibility::length_kv(std::int64_t batch) const {
    const auto& lens = problem_->mask.lens_kv;
    return lens.empty() ? problem_->len_kv : lens[static_cast<std::size_t>(batch)];
}

Visibility::Place Visibility::place(const Row& row, std::int64_t key) const {
    Place p{row.query, key, 0};
    std::int64_t queries = length_q(row.batch), keys = length_kv(row.batch);
    if (!document_q_.empty()) {
        const auto d = static_cast<std::size_t>(document_q_[static_cast<std::size_t>(row.query)]);
        p.query -= start_q_[d];
        p.key -= start_kv_[d];
        queries = problem_->mask.documents_q[d];
        keys = problem_->mask.documents_kv[d];
    }
    const bool top_left = dialect_->causal == CausalAlignment::top_left && !problem_->cache.present;
    p.offset = top_left ? 0 : keys - queries;
    return p;
}

bool Visibility::hides(Hiding by, const Row& row, std::int64_t key) const {
    switch (by) {
        case Hiding::length:
            return key >= length_kv(row.batch);
        case Hiding::document:
            return !document_q_.empty() && document_q_[static_cast<std::size_t>(row.query)] !=
                                               document_kv_[static_cast<std::size_t>(key)];
        case Hiding::causal: {
            if (!problem_->mask.causal || hides(Hiding::document, row, key)) return false;
            const Place p = place(row, key);
            return p.key > p.query + p.offset;
        }
        case Hiding::window: {
            const Window& window = problem_->mask.window;
            if (!window.limited() || hides(Hiding::document, row, key)) return false;
            const Place p = place(row, key);
            const std::int64_t behind = p.query + p.offset - p.key;
            return behind > reach(window.left, dialect_->window_ends) ||
                   -behind > reach(window.right, dialect_->window_ends);
        }
        case Hiding::mask: {
            if (mask_ == nullptr) return false;
            const double value = mask_->broadcast_at(row.batch, row.head, row.query, key);
            return problem_->mask.tensor.kind == MaskKind::boolean ? value == 0
                                                                   : std::isinf(value) && value < 0;
        }
    }
    return false;
}

bool Visibility::sees(const Row& row, std::int64_t key) const {
    if (!is_query(row)) return false;
    for (const Hiding by :
         {Hiding::length, Hiding::document, Hiding::causal, Hiding::window, Hiding::mask})
        if (hides(by, row, key)) return false;
    return true;
}

std::int64_t Visibility::visible_count(const Row& row) const {
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < problem_->len_kv; ++j) count += sees(row, j) ? 1 : 0;
    return count;
}

bool Visibility::empty(const Row& row) const {
    if (!is_query(row)) return false;
    for (std::int64_t j = 0; j < problem_->len_kv; ++j)
        if (sees(row, j)) return false;
    return true;
}

std::string_view Visibility::reason(const Row& row, std::int64_t key) const {
    if (!is_query(row)) return "although the sequence ends before that query";
    if (hides(Hiding::length, row, key)) return "which lies past the sequence's end";
    if (hides(Hiding::document, row, key)) return "which belongs to another document";
    if (hides(Hiding::causal, row, key)) return "which the causal mask hides";
    if (hides(Hiding::window, row, key)) return "which lies outside the window";
    if (hides(Hiding::mask, row, key)) return "which the mask tensor hides";
    return "";
}

std::vector<Row> all_rows(const Problem& problem) {
    std::vector<Row> rows;
    for (std::int64_t b = 0; b < problem.batch; ++b)
        for (std::int64_t h = 0; h < problem.heads_q; ++h)
            for (std::int64_t i = 0; i < problem.len_q; ++i) rows.push_back({b, h, i});
    return rows;
}

}  // namespace attest::law
