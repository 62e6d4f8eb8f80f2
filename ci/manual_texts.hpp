#pragma once
// The manuals that the command brings: of the interface, of what a problem means, of the protocol,
// of CUDA kernels on a CPU, of the process that a kernel runs in.

#include <optional>
#include <string>
#include <vector>

namespace attest::ci {

/// What `attest manual` prints besides its own page: interface, protocol, problem, simt,
/// worker.
std::vector<std::string> manual_subjects();

/// The manual of a subject, or the section of one whose heading has that word: "manifest",
/// "cuda". Nothing where there is neither.
std::optional<std::string> manual_text(const std::string& subject);

}  // namespace attest::ci
