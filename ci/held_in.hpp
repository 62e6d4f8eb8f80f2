#pragma once
// What a kernel is held from, where what it says of itself names that.

#include <string>

#include "ci/run_report.hpp"

namespace attest::ci {

/// Empty: nothing that `problem` names, or that this machine does not hold a kernel from.
std::string held_in(const KernelReport& kernel, const std::string& problem);

}  // namespace attest::ci
