#pragma once
// How time is told that limits and reports speak of.

#include <chrono>

namespace attest::search {

inline double seconds_since(std::chrono::steady_clock::time_point begin) noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace attest::search
