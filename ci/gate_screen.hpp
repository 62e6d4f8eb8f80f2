#pragma once
// What `attest gate` prints: what changed, worst first, the causes of what is new, and the verdict
// last.

#include <string>

#include "ci/gate.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

/// `directory` is where the candidate's results lie, as replay lines name it.
std::string draw_gate(const GateReport& gate, const RunReport& baseline, const RunReport& candidate,
                      const std::string& directory, const ScreenStyle& style);

/// The same as a page of Markdown.
std::string gate_page(const GateReport& gate, const RunReport& baseline, const RunReport& candidate,
                      const std::string& directory);

}  // namespace attest::ci
