// The part of the shrinker that tries data: the simplest that fails, fresh data along with a move,
// and the sweep over all that is smaller.

#include <utility>

#include "properties/search/shrinker.hpp"

namespace attest::search {

namespace {

/// Of one sweep. The list is in order of size, so a longer budget only adds larger cases to it.
constexpr std::int64_t sweep_evaluations = 800;

/// Up to this many scores a sweep tries the whole ladder.
constexpr std::int64_t scores_tried_fully = 1;

}  // namespace

/// The data of the ladder in order, on a case that was moved or not.
bool Shrinker::try_data(const Case& moved, Share share, const std::string& change) {
    for (const Values& values : data_ladder(property_.cases.kinds, moved, share)) {
        Case candidate = moved;
        candidate.values = values;
        if (attempt(std::move(candidate), "data", change)) return true;
    }
    return false;
}

bool Shrinker::simpler_data() {
    return try_data(best_.tried, Share::whole, "values to the ladder's simplest");
}

/// Where the data decide, a smaller shape fails with other data than a larger one: each move again,
/// with all of the ladder.
bool Shrinker::move_with_data() {
    const Case start = best_.tried;
    for (const Edit& edit : feature_edits(start.problem)) {
        Case moved = start;
        edit.apply(moved.problem);
        if (try_data(moved, Share::moving, edit.change + ", other values")) return true;
    }
    for (const Parameter& parameter : parameters(start.problem)) {
        const std::int64_t now = parameter.get(start.problem);
        for (const std::int64_t to :
             {parameter.floor, now - (now - parameter.floor) / 2, now - parameter.step}) {
            if (to < parameter.floor || to >= now) continue;
            Case moved = start;
            parameter.set(moved.problem, to);
            const std::string change = parameter.label + " " + std::to_string(now) + " -> " +
                                       std::to_string(to) + parameter.kept + ", other values";
            if (try_data(moved, Share::moving, change)) return true;
        }
    }
    return false;
}

bool Shrinker::sweep() {
    const std::int64_t last = result_.evaluations + sweep_evaluations;
    const auto& kinds = property_.cases.kinds;
    const auto whole = data_ladder(kinds, best_.tried, Share::moving);
    const auto part = data_ladder(kinds, best_.tried, Share::sweeping);
    for (const Problem& problem : smaller_shapes(best_.tried.problem)) {
        const bool fully = score_count(problem) <= scores_tried_fully;
        for (const Values& values : fully ? whole : part) {
            if (!open() || result_.evaluations >= last) return false;
            if (attempt({problem, values}, "sweep", "the next smaller case that fails"))
                return true;
        }
    }
    return false;
}

bool Shrinker::write_out() {
    if (!property_.cases.kinds.empty()) return false;
    for (Case& candidate : written_out(best_.tried))
        if (attempt(std::move(candidate), "data", "values written out")) return true;
    return false;
}

}  // namespace attest::search
