#pragma once
// Errors that no wrong specification explains, and a coarser step does that the manifest has a word
// for.

#include <string>
#include <vector>

#include "properties/diagnosis/diagnose.hpp"
#include "properties/diagnosis/evidence.hpp"

namespace attest::diagnosis {

/// The steps whose declaration would make every wrong call right, and of whose bound the errors are
/// a good part; the narrowest bounds first.
std::vector<Explanation> coarser_steps(const std::vector<Evidence>& wrong);

/// Ids of the steps whose declaration would make every wrong call right, however large the errors.
std::vector<std::string> fitting_steps(const std::vector<Evidence>& wrong);

/// True of the ids of its explanations.
bool is_coarser_step(const std::string& id);

}  // namespace attest::diagnosis
