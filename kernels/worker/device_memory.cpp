#include "kernels/worker/device_memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/worker/load.hpp"
#include "reference/problem/tensor.hpp"

namespace attest::worker {
namespace {

constexpr std::size_t zone_bytes = 4096;
constexpr std::byte zone_byte{0xFF};  // NaN in every float format
constexpr int to_device = 1, to_host = 2;

/// The runtime that the library is linked with, or one that the loader finds.
void* runtime_of(void* library) {
    if (library != nullptr && ::dlsym(library, "cudaMalloc") != nullptr) return library;
    for (const char* name : {"libcudart.so", "libcudart.so.13", "libcudart.so.12"})
        if (void* found = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
    throw LoadFailure("it wants its tensors in CUDA memory, and no libcudart.so was found");
}

template <typename Function>
void find(void* runtime, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(runtime, name));
    if (function == nullptr) throw LoadFailure(fmt::format("its CUDA runtime has no {}", name));
}

std::string name_of(const protocol::Tensor& t) {
    return t.role == protocol::workspace_role ? "the workspace"
                                              : std::string(name(static_cast<Role>(t.role)));
}

}  // namespace

DeviceMemory::DeviceMemory(void* library) {
    void* const runtime = runtime_of(library);
    find(runtime, "cudaMalloc", cuda_.malloc);
    find(runtime, "cudaFree", cuda_.free);
    find(runtime, "cudaMemcpy", cuda_.memcpy);
    find(runtime, "cudaStreamCreate", cuda_.stream_create);
    find(runtime, "cudaStreamSynchronize", cuda_.stream_synchronize);
    find(runtime, "cudaGetDeviceCount", cuda_.device_count);
    find(runtime, "cudaGetErrorString", cuda_.error_string);
    int devices = 0;
    const int code = cuda_.device_count(&devices);
    if (code != 0 || devices == 0)
        throw LoadFailure(fmt::format("it wants its tensors in CUDA memory: {}",
                                      code != 0 ? cuda_.error_string(code) : "no device is there"));
    for (void*& stream : streams_)
        if (const int made = cuda_.stream_create(&stream); made != 0)
            throw LoadFailure(fmt::format("no CUDA stream: {}", cuda_.error_string(made)));
}

DeviceMemory::~DeviceMemory() {
    if (arena_ != nullptr) cuda_.free(arena_);
}

void DeviceMemory::check(int code, const char* what) const {
    if (code != 0)
        throw DeviceLost(
            fmt::format("{}: CUDA error {}, {}", what, code, cuda_.error_string(code)));
}

void DeviceMemory::begin(std::uint64_t pages_bytes, std::size_t tensors) {
    laid_.clear();
    used_ = 0;
    const std::size_t wanted = pages_bytes + tensors * 2 * zone_bytes;
    if (wanted <= arena_bytes_) return;
    if (arena_ != nullptr) check(cuda_.free(std::exchange(arena_, nullptr)), "freeing");
    void* made = nullptr;
    check(cuda_.malloc(&made, wanted), "allocating");
    arena_ = static_cast<std::byte*>(made);
    arena_bytes_ = wanted;
}

void* DeviceMemory::lay(const protocol::Tensor& tensor, std::byte* pages) {
    const std::size_t bytes = tensor.pages_bytes + 2 * zone_bytes;
    std::vector<std::byte> block(bytes, zone_byte);
    std::memcpy(block.data() + zone_bytes, pages, tensor.pages_bytes);
    std::byte* const device = arena_ + used_;
    used_ += bytes;
    check(cuda_.memcpy(device, block.data(), bytes, to_device), "copying to the device");
    laid_.push_back({tensor, pages, device});
    return device + zone_bytes + (tensor.data - tensor.pages);
}

std::string DeviceMemory::examine(const Laid& laid, const std::vector<std::byte>& now) const {
    const auto whole = [](const std::byte* zone) {
        return std::all_of(zone, zone + zone_bytes, [](std::byte b) { return b == zone_byte; });
    };
    const std::byte* const pages = now.data() + zone_bytes;
    if (!whole(now.data())) return "wrote before the pages of " + name_of(laid.tensor);
    if (!whole(pages + laid.tensor.pages_bytes))
        return "wrote behind the pages of " + name_of(laid.tensor);
    if (laid.tensor.access == protocol::Access::read &&
        std::memcmp(pages, laid.host, laid.tensor.pages_bytes) != 0)
        return "changed its input " + name_of(laid.tensor);
    return {};
}

std::string DeviceMemory::finish(void* stream) {
    check(cuda_.stream_synchronize(stream), "the kernel");
    std::string found;
    std::vector<std::byte> now;
    for (const Laid& laid : laid_) {
        now.resize(laid.tensor.pages_bytes + 2 * zone_bytes);
        check(cuda_.memcpy(now.data(), laid.device, now.size(), to_host), "copying back");
        if (found.empty()) found = examine(laid, now);
        if (laid.tensor.access == protocol::Access::write)
            std::memcpy(laid.host, now.data() + zone_bytes, laid.tensor.pages_bytes);
    }
    return found;
}

}  // namespace attest::worker
