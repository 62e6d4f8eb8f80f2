#pragma once
// The tensors of a call, in the bytes that PROTOCOL.md fixes.

#include <array>
#include <cstddef>
#include <cstdint>

namespace attest::worker::protocol {

enum class Access : std::uint8_t { read = 1, write = 2 };

struct WireTensor {
    std::uint16_t role = 0;
    std::uint8_t code = 0, bits = 0;  // DLPack's
    Access access = Access::read;
    std::uint8_t ndim = 0;
    std::uint16_t reserved = 0;
    std::uint64_t data = 0;                    // of the first element, from the memory's start
    std::uint64_t pages = 0, pages_bytes = 0;  // the whole pages it lies in
    std::array<std::int64_t, 4> shape{};       // ndim of them are used
    std::array<std::int64_t, 4> stride{};      // in elements
};

static_assert(sizeof(WireTensor) == 96 && offsetof(WireTensor, shape) == 32);

}  // namespace attest::worker::protocol
