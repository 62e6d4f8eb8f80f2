#pragma once
// A GPU's copy of a call's tensors, for kernels that declare CUDA memory.
//
// Every tensor's pages, slack and poison included, are copied to the device. Where the driver
// allows, they end at a guard in even calls and begin at one in odd calls, as on the host, and what
// goes past it ends the context, and the process with it. On a side without a guard lies a zone of
// NaN. Afterwards outputs come back as whole pages, so that the host sees what was written beside
// them, and zones and inputs are compared here. The CUDA runtime is the one the kernel's library is
// linked with.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/worker/device_guards.hpp"
#include "kernels/worker/protocol.hpp"

namespace attest::worker {

/// The context is lost: nothing can be asked of it any more.
class DeviceLost : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The device has not the memory for a call's tensors: nobody's fault.
class DeviceFull : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class DeviceMemory {
public:
    /// library: dlopen's handle of the kernel's library. Throws LoadFailure without a CUDA runtime
    /// or a device.
    explicit DeviceMemory(void* library);
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    /// A cudaStream_t; two are used by turns, so that no call can rely on the one before. They and
    /// the default stream, which copies the outputs back, do not wait for each other.
    void* stream() const { return streams_[call_number_ % 2]; }

    /// Makes room for a call's tensors; pages of the earlier call are gone. Throws DeviceLost and
    /// DeviceFull.
    void begin(std::span<const protocol::WireTensor> tensors, std::uint32_t call_number);
    /// Copies the next tensor's pages, which lie at `pages`; the device's address of its first
    /// element.
    void* lay(const protocol::WireTensor& tensor, std::byte* pages);
    /// Waits for the call's stream, copies outputs back. What the kernel did that it must not;
    /// empty: nothing. Throws DeviceLost.
    std::string finish();

private:
    struct Runtime {
        int (*malloc)(void**, std::size_t);
        int (*free)(void*);
        int (*memcpy)(void*, const void*, std::size_t, int);
        int (*stream_create)(void**, unsigned);
        int (*stream_synchronize)(void*);
        int (*device_count)(int*);
        int (*last_error)();
        const char* (*error_string)(int);
    };
    struct Laid {
        protocol::WireTensor tensor;
        std::byte* host;
        std::byte* device;           ///< the zone before the pages, or the pages
        std::size_t before, behind;  ///< bytes of the zones

        std::size_t bytes() const { return before + tensor.pages_bytes + behind; }
    };
    bool find_guarded_rooms(std::span<const protocol::WireTensor> tensors);
    void grow_arena(std::size_t bytes);
    void check(int code, const char* what) const;
    std::string examine(const Laid& laid, const std::vector<std::byte>& now) const;

    Runtime cuda_{};
    void* streams_[2] = {nullptr, nullptr};
    std::unique_ptr<DeviceGuards> guards_;  ///< null: the arena, without guards
    std::byte* arena_ = nullptr;
    std::size_t arena_bytes_ = 0;
    std::uint32_t call_number_ = 0;
    std::vector<std::span<std::byte>> rooms_;  ///< of this call's tensors
    std::vector<Laid> laid_;
};

}  // namespace attest::worker
