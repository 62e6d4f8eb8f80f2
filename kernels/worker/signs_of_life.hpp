#pragma once
// Whether a process that does not answer still gets anywhere. Who starts up, compiles, loads or
// fills memory touches pages for the first time, reads, starts threads or programs, or waits for a
// disk. Who waits for what never comes, or goes round in a loop, does none of it.

#include <sys/types.h>

#include <cstdint>

namespace attest::worker {

class SignsOfLife {
public:
    explicit SignsOfLife(pid_t process) : process_(process), before_(count()) {}

    /// Whether there was one since it was last asked. True where the system does not tell.
    bool seen();

private:
    /// Of it and all its descendants; 0 where the system does not tell.
    std::uint64_t count() const;

    pid_t process_;
    std::uint64_t before_;
};

}  // namespace attest::worker
