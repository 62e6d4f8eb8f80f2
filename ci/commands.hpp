#pragma once
// The commands. Each writes its result to standard output and returns the exit code.

#include "ci/options.hpp"

namespace attest::ci {

int list_command(const CommandOptions& options);
int check_command(const CommandOptions& options);
int replay_command(const CommandOptions& options);
int explain_command(const CommandOptions& options);
int certify_command(const CommandOptions& options);
int verify_command(const CommandOptions& options);
int merge_command(const CommandOptions& options);
int key_command(const CommandOptions& options);
int report_command(const CommandOptions& options);
int gate_command(const CommandOptions& options);
int describe_command(const CommandOptions& options);
int audit_command(const CommandOptions& options);
int bench_command(const CommandOptions& options);
int fixture_command(const CommandOptions& options);
int new_command(const CommandOptions& options);

/// Reads the command line, runs the command, and prints every error once. Returns the exit code.
int run_command_line(int argc, const char* const* argv);

/// Writes all of a text to standard output; InternalError where that fails.
void write_out(const std::string& text);

/// Makes the folder of --out; BadInput where it cannot be made.
void make_out_folder(const std::string& folder);

}  // namespace attest::ci
