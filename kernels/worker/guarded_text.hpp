#pragma once
// Where a kernel writes a reason or an error: what it writes past the end is a fault of its own,
// not the end of the stack.

#include <string>

#include "kernels/worker/protocol.hpp"

namespace attest::worker {

class GuardedText {
public:
    GuardedText();  ///< tells `circumstances` where its guard lies

    char* data() noexcept { return data_; }
    const char* data() const noexcept { return data_; }
    /// With the byte that ends the text.
    static constexpr std::size_t size() noexcept { return protocol::text_bytes_max; }
    void clear() noexcept;

private:
    char* data_;
};

}  // namespace attest::worker
