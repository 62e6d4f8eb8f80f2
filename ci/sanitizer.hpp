#pragma once
// compute-sanitizer on a smallest case, as evidence beside the verdict: where a law tells that an
// output is wrong, it often tells which line of the kernel strayed. It never decides anything.

#include <atomic>
#include <string>
#include <vector>

#include "properties/diagnosis/sanitizer_report.hpp"

namespace attest::ci {

/// What a replay under a tool may take, as --timeout says it. A smallest case takes well under a
/// second; device code runs up to a hundred times as long there.
inline constexpr const char* sanitizer_limit = "60s";

/// Runs `command` (a replay) under each of compute-sanitizer's tools, as found on the PATH. What
/// was printed is kept as `prefix`TOOL.txt. Where the program is interrupted, the rest is not run.
std::vector<diagnosis::SanitizerEntry> ask_sanitizer(const std::vector<std::string>& command,
                                                     const std::string& prefix,
                                                     const std::atomic<int>& interrupted);

/// The entries in words, those that say the same as one: "racecheck, synccheck: no errors".
std::vector<std::string> sanitizer_sentences(const std::vector<diagnosis::SanitizerEntry>& entries);

}  // namespace attest::ci
