#pragma once
// How a command ends, as scripts read it.

namespace attest::ci {

inline constexpr int exit_holds = 0, exit_violated = 1, exit_bad_input = 2, exit_inconclusive = 3,
                     exit_internal = 4;

}  // namespace attest::ci
