#pragma once
// Experiments that refute a coarser step: its bounds are wide, and errors of another origin lie
// within them. On inputs whose every number the narrow format holds, such a step changes nothing;
// on plain ones it must show.

#include "properties/diagnosis/diagnose.hpp"
#include "properties/search/kernel.hpp"

namespace attest::diagnosis {

/// Whether the kernel is shown not to take this step. One that does not take the calls this needs
/// is not cleared of it.
bool step_refuted(search::Kernel& kernel, const Case& smallest, const std::string& id);

}  // namespace attest::diagnosis
