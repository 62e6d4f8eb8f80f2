#pragma once

#include <cstdint>

namespace attest::worker {

/// Which processors a worker may run on. one: no two of its threads ever run at the same moment, so
/// that what differs from `all` is how threads are scheduled, and nothing else.
enum class Processors : std::uint8_t { all, one };

int processors() noexcept;  ///< that this thread, and so what it starts, may run on

}  // namespace attest::worker
