#pragma once
// What memory a worker's processes take, and whether it was the machine that ran out of it.

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace attest::worker {

/// Resident bytes of a process and of those it started, files and tensors apart; `parent` is this
/// process or the one that gathers its orphans. Memory that they could share with another counts
/// too, or a kernel could take all there is that way; that of memory_fd, which is the tensors',
/// does not: the host has filled more of it than the process has touched. `enough`: what comes to
/// more is counted anew, by what each holds of the pages that several hold. 0 if unknown.
std::uint64_t resident_memory(pid_t process, pid_t parent, int memory_fd, std::uint64_t enough);

/// How many processes the system has killed because no memory was left, to the machine or to a
/// control group: of those in this process's group, which are the workers too, or where groups do
/// not say, of all. Counted before they die; none where nothing says.
std::optional<std::uint64_t> kills_for_memory();

}  // namespace attest::worker
