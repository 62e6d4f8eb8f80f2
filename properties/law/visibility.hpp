#pragma once
// Which keys a query may see, read off the problem, the dialect and the mask tensor as
// reference/problem/README.md defines it; and, for a key it may not see, by what it is hidden.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "properties/law/compare.hpp"
#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::law {

/// What hides a key from a query.
enum class Hiding : std::uint8_t { length, document, causal, window, mask };

class Visibility {
public:
    /// Keeps pointers to its arguments: they must outlive it.
    Visibility(const Problem& problem, const Dialect& dialect, const TensorSet& inputs);

    bool sees(const Row& row, std::int64_t key) const;
    bool hides(Hiding by, const Row& row, std::int64_t key) const;
    bool empty(const Row& row) const;  ///< a query that sees no key (never true past lens_q)
    bool is_query(const Row& row) const { return row.query < length_q(row.batch); }

    std::int64_t length_q(std::int64_t batch) const;   ///< q_b
    std::int64_t length_kv(std::int64_t batch) const;  ///< n_b
    std::int64_t visible_count(const Row& row) const;

    /// "which the causal mask hides": why the row cannot see the key; empty where it can.
    std::string_view reason(const Row& row, std::int64_t key) const;

private:
    /// The diagonal: query i stands opposite key i + offset (of its document, where there are any).
    struct Place {
        std::int64_t query = 0, key = 0, offset = 0;
    };
    Place place(const Row& row, std::int64_t key) const;

    const Problem* problem_;
    const Dialect* dialect_;
    const Tensor* mask_ = nullptr;
    std::vector<std::int64_t> document_q_, document_kv_;  ///< document of each query and key
    std::vector<std::int64_t> start_q_, start_kv_;        ///< first query and key of each document
};

/// [batch, heads_q, len_q] in order.
std::vector<Row> all_rows(const Problem& problem);

}  // namespace attest::law
