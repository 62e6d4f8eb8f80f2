#pragma once
// The commands. Each writes its result to standard output and returns the exit code.

#include "ci/options.hpp"

namespace attest {

int list_command(const Options& options);
int check_command(const Options& options);
int replay_command(const Options& options);
int explain_command(const Options& options);
int certify_command(const Options& options);
int describe_command(const Options& options);
int bench_command(const Options& options);
int fixture_command(const Options& options);

/// Reads the command line, runs the command, and prints every error once. Returns the exit code.
int run_command_line(int argc, const char* const* argv);

/// Writes all of a text to standard output; InternalError where that fails.
void write_out(const std::string& text);

}  // namespace attest
