#pragma once
// What every worker does first, whatever it becomes: it dies with its host, leaves no core file,
// and keeps the kernel's prints off the terminal.

#include <sys/types.h>

namespace attest::worker {

/// The kernel's death signal follows the host's *thread* that started this process, so the host
/// starts workers from one thread that lasts as long as itself. Exits where the host has died
/// meanwhile.
void accept_discipline();

/// The command line and the process's name tell the kernel neither who started it nor how.
void forget_names(int argc, char** argv);

/// The part of it that a child does not inherit.
void die_with_parent();

}  // namespace attest::worker
