#pragma once
// The inputs of one problem for another: what the case is about is given, and what describes its
// shape (lengths, block table, positions) follows from the other.

#include "reference/problem/case.hpp"
#include "reference/problem/tensor.hpp"

namespace attest {

/// make_inputs(c), but of q, k, v, mask, slopes and sinks those that are given. They have the
/// shapes and types that the problem needs.
TensorSet make_inputs(const Case& c, const TensorSet& given);

}  // namespace attest
