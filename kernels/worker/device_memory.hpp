#pragma once
// A GPU's copy of a call's tensors, for kernels that declare CUDA memory.
//
// Every tensor's pages, slack and poison included, are copied to the device between two zones of
// NaN; afterwards outputs come back as whole pages, so that the host sees what was written beside
// them, and zones and inputs are compared here. A read outside meets NaN; a read far outside ends
// the context, and the process with it. The CUDA runtime is the one the kernel's library is linked
// with.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/worker/protocol.hpp"

namespace attest::worker {

/// The context is lost: nothing can be asked of it any more.
class DeviceLost : public std::runtime_error {
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

    /// A cudaStream_t; two are used by turns, so that no call can rely on the one before.
    void* stream(std::uint32_t call_number) const { return streams_[call_number % 2]; }

    /// Makes room for a call's tensors; pages of the earlier call are gone.
    void begin(std::uint64_t pages_bytes, std::size_t tensors);
    /// Copies the tensor's pages, which lie at `pages`; the device's address of its first element.
    void* lay(const protocol::Tensor& tensor, std::byte* pages);
    /// Waits for the stream, copies outputs back. What the kernel did that it must not; empty:
    /// nothing. Throws DeviceLost.
    std::string finish(void* stream);

private:
    struct Runtime {
        int (*malloc)(void**, std::size_t);
        int (*free)(void*);
        int (*memcpy)(void*, const void*, std::size_t, int);
        int (*stream_create)(void**);
        int (*stream_synchronize)(void*);
        int (*device_count)(int*);
        const char* (*error_string)(int);
    };
    struct Laid {
        protocol::Tensor tensor;
        std::byte* host;
        std::byte* device;  ///< the zone before the pages
    };
    void check(int code, const char* what) const;
    std::string examine(const Laid& laid, const std::vector<std::byte>& now) const;

    Runtime cuda_{};
    void* streams_[2] = {nullptr, nullptr};
    std::byte* arena_ = nullptr;
    std::size_t arena_bytes_ = 0, used_ = 0;
    std::vector<Laid> laid_;
};

}  // namespace attest::worker
