#pragma once
// What is put down to a defect of addresses.

#include <vector>

#include "properties/diagnosis/cause_groups.hpp"

namespace attest::diagnosis {

/// Right where all is contiguous is what a kernel is too that mistakes the strides of one tensor:
/// in some layouts it reads what nobody gave it, which no name predicts. And a write or read
/// elsewhere is put down to a defect of addresses, of strides or of pages, where that can be met,
/// as is what has no name of a law of strides.
void join_addresses(Groups& groups, const std::vector<CounterexampleReport>& counterexamples);

}  // namespace attest::diagnosis
