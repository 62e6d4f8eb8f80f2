#pragma once
// What the reference's own gradients are off by before they are summed.

#include <vector>

#include "reference/oracle/gradient_book.hpp"

namespace attest::oracle {

/// Of every dX_ij of a row, the sums that follow included: `own`, one an entry.
void own_scores(const Prepared& call, const bound::KernelModel& model, const ArithmeticError& a,
                const GradientEntry& entry, std::vector<double>& own);

}  // namespace attest::oracle
