#pragma once
// How large a law's cases may be: the least of what the law, the profile and the kernel say, and
// never less than the smallest problem that the kernel takes.

#include <cstdint>

#include "properties/search/draw.hpp"
#include "properties/search/raw_draw.hpp"

namespace attest::search {

/// Whether cases are of the profile's long lengths and not of the law's own.
bool is_long(const DrawSpace& space);

/// What a case may have whatever the law's share is: the smallest problem that the kernel takes or,
/// of one that takes whole tiles alone, several of them, so that what goes wrong between tiles and
/// between heads is met.
std::int64_t scores_floor(const DrawSpace& space, bool alike);

/// The most scores of a case; `alike`: of cases with as many queries as keys.
std::int64_t scores_limit(const DrawSpace& space, bool alike);

/// What the raw numbers of a case are drawn from.
RawLimits raw_limits(const DrawSpace& space);

}  // namespace attest::search
