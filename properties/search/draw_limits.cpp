#include "properties/search/draw_limits.hpp"

#include <algorithm>
#include <initializer_list>

#include "properties/search/landmarks.hpp"

namespace attest::search {

namespace {

std::int64_t least_limit(std::initializer_list<std::int64_t> limits) {
    std::int64_t least = 0;
    for (const std::int64_t limit : limits)
        if (limit > 0 && (least == 0 || limit < least)) least = limit;
    return std::max<std::int64_t>(least, 1);
}

constexpr std::int64_t several_tiles = 4;

}  // namespace

bool is_long(const DrawSpace& s) {
    return s.property.cases.any_length && s.profile.len_min > 1;
}

std::int64_t scores_floor(const DrawSpace& s, bool alike) {
    constexpr std::int64_t several = 9, usual_worth = 16;  // three tiles square; runs' usual scores
    const std::int64_t smallest = score_count(s.capability.smallest(alike));
    const law::CaseSpace& space = s.property.cases;
    if (s.capability.simulated || space.scores_max > 0) return smallest;
    const std::int64_t afforded = usual_worth * s.profile.scores_max / (smallest * space.cost);
    return smallest * std::clamp<std::int64_t>(afforded, 1, several);
}

std::int64_t scores_limit(const DrawSpace& s, bool alike) {
    if (is_long(s)) return s.profile.scores_max;
    const law::CaseSpace& space = s.property.cases;
    const std::int64_t share = std::max<std::int64_t>(s.profile.scores_max / space.cost, 1);
    return std::max(least_limit({space.scores_max, share}), scores_floor(s, alike));
}

RawLimits raw_limits(const DrawSpace& s) {
    const law::CaseSpace& space = s.property.cases;
    RawLimits limits;
    limits.len_max = least_limit({is_long(s) ? 0 : space.len_max, s.profile.len_max,
                                  s.capability.len_max, scores_limit(s, space.square)});
    const Problem smallest = s.capability.smallest(space.square);
    if (const std::int64_t least = std::max(smallest.len_q, smallest.len_kv);
        least > limits.len_max) {  // a kernel's shortest is seldom its only one
        limits.len_max = least + (space.len_max > 0 ? 0 : limits.len_max);
        if (s.capability.len_max > 0)
            limits.len_max = std::min(limits.len_max, s.capability.len_max);
    }
    if (space.len_max == 0 && s.capability.len_max == 0 && !is_long(s))
        limits.len_max = std::max(
            limits.len_max, several_tiles * std::max({s.capability.tile_q(), s.capability.tile_kv(),
                                                      s.capability.page_least()}));
    if (is_long(s)) limits.long_from = std::min(s.profile.len_min, limits.len_max);
    limits.batch_max = space.batch_max;
    const std::int64_t dim_max =
        least_limit({space.dim_max, s.profile.dim_max, s.capability.dim_max});
    limits.dims = s.capability.dims.empty() ? landmark_dims() : s.capability.dims;
    const std::int64_t least = limits.dims.front();
    std::erase_if(limits.dims, [dim_max](std::int64_t dim) { return dim > dim_max; });
    if (limits.dims.empty()) limits.dims = {least};  // above what the profile wants: all there is
    return limits;
}

}  // namespace attest::search
