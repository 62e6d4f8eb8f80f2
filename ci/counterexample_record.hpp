#pragma once
// The record of a counterexample: the smallest case, what was seen there, how it was found and
// shrunk, what the kernel computes instead, when it fails, and pictures of it.

#include "ci/record.hpp"
#include "properties/search/campaign.hpp"

namespace attest {

/// Diagnoses and draws with the kernel given, which must be the one that failed; without one (a
/// kernel that cannot be started again), those parts stay empty. The cause is left to group_causes.
Record counterexample_record(const LawResult& result, Subject* kernel);

}  // namespace attest
