#pragma once
// The shapes a kernel takes, as supports() tells them one number at a time: multiples of a tile,
// one query, pages of sixteen tokens, one head. A manifest has no words for these; drawing only
// what is taken leaves the share of refusals to those nobody could foresee.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/interface/takes.hpp"
#include "reference/problem/feature.hpp"
#include "reference/problem/problem.hpp"

namespace attest::search {

/// Tokens: the multiples of one number, from a limit up to a limit.
struct Lengths {
    std::int64_t multiple = 1, most = 0, least = 1;  ///< most 0: no limit
    bool has(std::int64_t len) const noexcept;
    /// The longest that is not above len; where there is none, the shortest there is.
    std::int64_t nearest(std::int64_t len) const noexcept;
    bool any() const noexcept { return *this == Lengths{}; }
    bool operator==(const Lengths&) const = default;
};

using kernel::Queries;

/// Empty lists: any.
struct Geometry {
    std::vector<std::int64_t> batches, heads_kv, groups, page_sizes;
    Lengths len_q, len_kv;
    Queries queries = Queries::any;
    bool any() const noexcept;
};

using Supports = std::function<bool(const Problem&)>;

/// Asks on variations of a problem that the kernel takes. Pages and groups are asked about where
/// they are among `features`. How queries and keys relate is as declared, or stricter; lengths that
/// the manifest lists, number by number, are not for the probe to narrow: it asks about others.
Geometry probed_geometry(const Problem& taken, FeatureSet features, const kernel::Takes& declared,
                         const Supports& takes);

/// Moves a shape to one the kernel takes. For before its features are set: lengths change.
void snap(Problem& shape, const Geometry& geometry, bool cached);

bool takes_shape(const Geometry& geometry, const Problem& problem);

/// For people, a sentence for each limit: "queries: multiples of 16".
std::vector<std::string> described(const Geometry& geometry);

}  // namespace attest::search
