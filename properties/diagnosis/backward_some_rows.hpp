#pragma once
// A defect of backward that shows in some rows of a gradient alone: in the last tile of keys, in
// heads that are not the first of their group, in rows of queries that see nothing.

#include <vector>

#include "properties/diagnosis/backward_evidence.hpp"

namespace attest::diagnosis {

/// Deviations that predict every wrong row of the gradients that are wrong somewhere, each with the
/// relation of rows that parts these from the rows in which it is refuted. None where no relation
/// does, or where one may do so by chance.
std::vector<BackwardDeviation> in_some_gradient_rows(const AllBackwardEvidence& evidence,
                                                     const std::vector<Role>& wrong_roles);

}  // namespace attest::diagnosis
