#pragma once
// The rows of a call as the reference has them, computed once for all deviations that ask.

#include <memory>
#include <vector>

#include "properties/diagnosis/deviation.hpp"
#include "reference/oracle/oracle.hpp"

namespace attest::diagnosis {

/// Flat over [batch, heads_q, len_q]; never null. A hundred deviations are tried on each of a few
/// calls: those asked for last are kept, for each thread its own.
std::shared_ptr<const std::vector<oracle::RowDetail>> rows_of(const Specification& s);

}  // namespace attest::diagnosis
