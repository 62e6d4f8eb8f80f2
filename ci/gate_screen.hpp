#pragma once
// What `attest gate` prints: what changed, worst first, and the verdict last.

#include <string>

#include "ci/gate.hpp"
#include "ci/screen.hpp"

namespace attest::ci {

std::string draw_gate(const GateReport& gate, const RunReport& baseline, const RunReport& candidate,
                      const ScreenStyle& style);

/// The same as a page of Markdown.
std::string gate_page(const GateReport& gate, const RunReport& baseline,
                      const RunReport& candidate);

}  // namespace attest::ci
