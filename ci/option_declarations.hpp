#pragma once
// Every command and its options, each with the line that its help says of it.

#include <CLI/CLI.hpp>

#include "ci/typed_options.hpp"

namespace attest::ci {

/// What is typed goes into the two.
void declare_options(CLI::App& app, CommandOptions& options, TypedOptions& typed);

}  // namespace attest::ci
