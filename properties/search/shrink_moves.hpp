#pragma once
// The moves of the shrinker: what can be made smaller in a case, one thing at a time or a few that
// belong together. A move edits a problem and repairs what follows from the edit; whether the
// result is valid, smaller, and still fails is for the shrinker to say.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/problem/feature.hpp"
#include "reference/problem/problem.hpp"

namespace attest::search {

/// A number of a problem that can be turned down. Where it moves others along, `kept` says what
/// that preserves: ", Tk - Tq kept".
struct Parameter {
    std::string label, kept;
    std::int64_t floor = 1;
    std::function<std::int64_t(const Problem&)> get;
    std::function<void(Problem&, std::int64_t)> set;
    std::int64_t step = 1;  ///< 1, or the number moves by this much at a time
};

/// A change that is made or not.
struct Edit {
    std::string change;
    std::function<void(Problem&)> apply;
    const char* pass = "features";
};

/// Everything that can be turned down in this problem, coupled moves before single ones.
std::vector<Parameter> parameters(const Problem& problem);

/// One edit a feature (or part of one) that can be switched off or made plainer.
std::vector<Edit> feature_edits(const Problem& problem);

/// Lengths of the mask, documents and cache follow the axes they belong to.
void repair(Problem& problem);

}  // namespace attest::search
