#pragma once

#include <sched.h>

#include <cstdint>

namespace attest::worker {

/// Which processors a worker may run on. one: no two of its threads ever run at the same moment, so
/// that what differs from `all` is how threads are scheduled, and nothing else.
enum class Processors : std::uint8_t { all, one };

/// How many processors this thread, and so what it starts, may run on.
inline int processors() noexcept {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    return ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
}

}  // namespace attest::worker
