#pragma once
// Which keys a query sees, straight from reference/problem/README.md. Everything but the mask
// tensor is a range of keys, so a row is a range plus a look at the tensor.

#include <cstdint>

#include "reference/problem/dialect.hpp"
#include "reference/problem/problem.hpp"

namespace attest::oracle {

/// The keys one query may see before the mask tensor is asked, and where it stands among them.
struct KeyRange {
    bool is_query = false;   ///< row below its sequence's length
    std::int64_t first = 0;  ///< keys [first, last); empty where first >= last
    std::int64_t last = 0;
    std::int64_t key_base = 0;  ///< first key of the document, or 0
    std::int64_t position = 0;  ///< i + off, relative to key_base
};

KeyRange keys_of(const Problem& problem, const Dialect& dialect, std::int64_t batch,
                 std::int64_t query);

/// n_b: how many keys sequence b has.
std::int64_t keys_valid(const Problem& problem, std::int64_t batch);

/// Where key j stands, counted within its document.
std::int64_t key_position(const Problem& problem, std::int64_t key);

}  // namespace attest::oracle
