#pragma once
// Errors that no wrong specification explains, and a coarser step does that the manifest has a word
// for.

#include <optional>

#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// The first step whose declaration would make every wrong call right, and of whose bound the
/// errors are a good part; the narrowest bounds first.
std::optional<Explanation> coarser_step(const std::vector<Evidence>& wrong);

}  // namespace attest::diagnosis
