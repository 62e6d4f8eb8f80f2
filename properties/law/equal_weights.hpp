#pragma once
// The mean of values whose weights are all exp(0): what a right kernel leaves of it.

#include "reference/bound/kernel_model.hpp"
#include "reference/problem/dialect.hpp"

namespace attest::law {

/// How far the mean of so many whole numbers, a power of two of them, may be from the exact one
/// before it is rounded to the output, as a share of the mean of their sizes.
double mean_slack(const bound::KernelModel& model, const Numerics& numerics, double keys);

}  // namespace attest::law
