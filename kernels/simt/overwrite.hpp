#pragma once
// Two writes that nothing orders, seen while the later one is about to happen: whether it changes
// anything shows when it has.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace simt {

struct Overwrite {
    Overwrite(std::uintptr_t at, bool in_shared, const void* own, const void* earlier,
              std::string says)
        : address(at), shared(in_shared), pc(own), other(earlier), text(std::move(says)) {}

    bool changed_nothing() const { return bits_at(address) == before; }

    /// Of one cell of the shadow: two bytes.
    static std::uint16_t bits_at(std::uintptr_t address) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, reinterpret_cast<const void*>(address), sizeof bits);
        return bits;
    }

    std::uintptr_t address;
    std::uint16_t before = bits_at(address);
    bool shared;
    const void *pc, *other;
    std::string text;
};

}  // namespace simt
