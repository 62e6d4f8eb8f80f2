#pragma once
// Tiles taken for full or for hidden by some of their queries or keys, in sizes that only the
// evidence can tell.

#include <cstdint>
#include <span>
#include <vector>

#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// Of tiles of so many queries by so many keys; with `of_groups` of rows of all heads of a group,
/// too.
std::vector<Deviation> full_tiles(std::span<const std::int64_t> queries,
                                  std::span<const std::int64_t> keys, bool of_groups);

/// Of all usual sizes; of the calls in which the kernel was wrong the first with a mask is asked.
std::vector<Deviation> full_tiles(const std::vector<Evidence>& wrong);

}  // namespace attest::diagnosis
