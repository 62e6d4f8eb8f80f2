#pragma once
// What `attest check` prints at its end, drawn from the records alone: families, causes, what was
// inconclusive, and last the verdict, where the eye is when the prompt returns.

#include <string>

#include "ci/record.hpp"
#include "ci/screen.hpp"

namespace attest {

/// `directory` is where the records lie, as replay lines name it.
std::string draw_check(const Records& records, const ScreenStyle& style,
                       const std::string& directory);

/// The parts, for other screens.
void draw_families(Screen& screen, const Records& records);
void draw_causes(Screen& screen, const Records& records, const std::string& directory);

/// "attest replay 94d22f --kernel ./libmine.so".
std::string replay_line(const Records& records, const Record& counterexample,
                        const std::string& directory);

}  // namespace attest
