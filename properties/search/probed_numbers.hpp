#pragma once
// The shapes a kernel takes, as supports() tells them one number at a time: multiples of a tile,
// one query, pages of sixteen tokens, one head. Where the manifest says none of it, drawing only
// what is taken leaves the share of refusals to those nobody could foresee.

#include <functional>

#include "kernels/interface/takes.hpp"
#include "reference/problem/feature.hpp"
#include "reference/problem/problem.hpp"

namespace attest::search {

using Supports = std::function<bool(const Problem&)>;

/// In the words of a manifest, what is found beyond the declared: batch, heads, groups, pages,
/// lengths and how queries relate to keys. Asks on variations of a problem that the kernel takes.
/// Pages and groups are asked about where they are among `features`. Lengths that the manifest
/// lists, number by number, are not for the probe to narrow: it asks about others.
kernel::NumberLimits probed_numbers(const Problem& taken, FeatureSet features,
                                    const kernel::Takes& declared, const Supports& takes);

}  // namespace attest::search
