#pragma once
// A case whose forward is right and whose gradients are not: P, dP, D and dS of the head that
// differs, expected and, where the kernel lets them be read, observed.

#include "ci/screen.hpp"
#include "properties/search/kernel.hpp"
#include "reference/problem/case.hpp"

namespace attest::ci {

/// Draws it and returns true; false where no gradient of the case differs.
bool explain_backward(Screen& screen, search::Kernel& kernel, const Case& tried);

}  // namespace attest::ci
