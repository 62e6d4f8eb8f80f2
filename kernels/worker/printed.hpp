#pragma once
// What a kernel printed, which is often the only thing that says why it ended: the text of an
// assertion, of an exception nobody caught, of a check of the CUDA runtime. Raw it is hostile.

#include <string>

namespace attest::worker {

/// The line that says why a process ended itself, made printable: of an assertion or an exception
/// if there is one, else the last two; empty where nothing was printed.
std::string telling_line(const std::string& printed);

/// Whether the process ended because a thread was to end alone (pthread_exit(), a cancellation)
/// and met code that lets nothing through.
bool left_its_thread(const std::string& printed);

/// The last lines, made printable.
std::string last_lines(const std::string& printed);

}  // namespace attest::worker
