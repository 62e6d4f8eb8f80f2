#pragma once
// Keys that a finite number hides so far below a row's maximum that nothing of them is left.

#include <vector>

#include "reference/bound/entry_loops.hpp"
#include "reference/bound/forward_bound.hpp"

namespace attest::bound {

/// Keys that a finite number hides, as far below the row's maximum as here: whatever error their
/// scores have up to a quarter of the distance, and where they overflow to -inf, their weights come
/// out as 0 in every format, since a maximum known to 1000 leaves 2000 between. (One known less
/// well leaves no proof at all.) They stand in the row with their weight of 0 and the least of the
/// other scores, without a bias, so that the errors of their own scores, of -1e30 or of a format's
/// lowest number, are nobody else's.
struct FarKeys {
    static constexpr double distance = 4096;
    std::vector<double> score, bias;

    FarKeys(const RowFacts& facts, const ScoreError& error);
};

}  // namespace attest::bound
