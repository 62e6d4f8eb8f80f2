#pragma once
// A run that was recorded earlier, read back.

#include <string>

#include "ci/run_report.hpp"

namespace attest::ci {

/// From a folder or its result.jsonl; sorted, and with an end: a run that was cut ends where its
/// records do. `directory` becomes the folder, as replay lines name it. BadInput where there is
/// none, or where a record is wrong.
RunReport read_run(const std::string& result, std::string& directory);

/// The name of a folder as it is told: without the slashes that a shell's completion leaves.
std::string without_slashes(std::string path);

}  // namespace attest::ci
