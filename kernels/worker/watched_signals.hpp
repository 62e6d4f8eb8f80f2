#pragma once
// Whether a kernel takes the signals by which its reads outside are seen, though it may give them
// back before its call ends: the C library's functions that do so are the worker's own here.

namespace attest::worker {

/// SIGSEGV or SIGBUS were given a handler since this was last asked, by anybody who did not ask the
/// system itself.
bool watched_signals_were_taken();

}  // namespace attest::worker
