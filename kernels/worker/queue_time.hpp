#pragma once
// How long a process has been ready to run while other work had the processors. A time limit that
// leaves this out says the same of a kernel on an idle machine and on one that is full.

#include <sys/types.h>

#include <chrono>
#include <map>

namespace attest::worker {

class QueueTime {
public:
    /// From now on.
    explicit QueueTime(pid_t process) : process_(process), before_(of_threads()) {}

    /// Of the thread that waited longest, its children apart; 0 where the system does not tell.
    std::chrono::nanoseconds waited() const;

private:
    std::map<pid_t, std::chrono::nanoseconds> of_threads() const;

    pid_t process_;
    std::map<pid_t, std::chrono::nanoseconds> before_;
};

}  // namespace attest::worker
