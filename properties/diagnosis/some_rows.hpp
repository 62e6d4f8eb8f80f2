#pragma once
// A defect that shows in some rows alone: in the last of each tile, from some head on, in all
// sequences but the first.

#include <span>
#include <vector>

#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// Those of the deviations that predict every wrong row, each with the relation of rows that parts
/// these from the rows in which it is refuted. None where no relation does.
std::vector<Deviation> in_some_rows(std::span<const Deviation> deviations,
                                    const AllEvidence& evidence);

}  // namespace attest::diagnosis
