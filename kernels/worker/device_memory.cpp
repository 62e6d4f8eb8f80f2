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

std::string name_of(const protocol::WireTensor& t) {
    return t.role == protocol::workspace_role ? "the workspace"
                                              : std::string(name(static_cast<Role>(t.role)));
}

}  // namespace

DeviceMemory::DeviceMemory(void* library) {
    void* const runtime = runtime_of(library);
    find(runtime, "cudaMalloc", cuda_.malloc);
    find(runtime, "cudaFree", cuda_.free);
    find(runtime, "cudaMemcpy", cuda_.memcpy);
    find(runtime, "cudaStreamCreateWithFlags", cuda_.stream_create);
    find(runtime, "cudaStreamSynchronize", cuda_.stream_synchronize);
    find(runtime, "cudaGetDeviceCount", cuda_.device_count);
    find(runtime, "cudaGetLastError", cuda_.last_error);
    find(runtime, "cudaGetErrorString", cuda_.error_string);
    int devices = 0;
    const int code = cuda_.device_count(&devices);
    if (code != 0 || devices == 0)
        throw LoadFailure(fmt::format("it wants its tensors in CUDA memory: {}",
                                      code != 0 ? cuda_.error_string(code) : "no device is there"));
    constexpr unsigned non_blocking = 1;
    for (void*& stream : streams_)
        if (const int made = cuda_.stream_create(&stream, non_blocking); made != 0)
            throw LoadFailure(fmt::format("no CUDA stream: {}", cuda_.error_string(made)));
    guards_ = DeviceGuards::open(library);
}

DeviceMemory::~DeviceMemory() {
    if (arena_ != nullptr) cuda_.free(arena_);
}

void DeviceMemory::check(int code, const char* what) const {
    if (code == 0) return;
    // It says neither which tensor nor where.
    constexpr int illegal_address = 700;
    const char* const beside = code != illegal_address || guards_ == nullptr ? ""
                               : call_number_ % 2 == 0 ? "; each tensor ends at a guard page"
                                                       : "; each tensor begins at a guard page";
    throw DeviceLost(
        fmt::format("{}: CUDA error {}, {}{}", what, code, cuda_.error_string(code), beside));
}

bool DeviceMemory::find_guarded_rooms(std::span<const protocol::WireTensor> tensors) {
    if (guards_ == nullptr) return false;
    rooms_.clear();
    for (const protocol::WireTensor& tensor : tensors) {
        rooms_.push_back(guards_->room(rooms_.size(), tensor.pages_bytes + zone_bytes));
        if (!rooms_.back().empty()) continue;
        guards_.reset();
        return false;
    }
    return true;
}

void DeviceMemory::grow_arena(std::size_t bytes) {
    arena_bytes_ = 0;
    if (arena_ != nullptr) check(cuda_.free(std::exchange(arena_, nullptr)), "freeing");
    void* made = nullptr;
    const int code = cuda_.malloc(&made, bytes);
    constexpr int out_of_memory = 2;
    if (code == out_of_memory) {
        cuda_.last_error();  // or the kernel would find it after its next launch
        throw DeviceFull(fmt::format("the device has no {} MiB for the tensors", bytes >> 20));
    }
    check(code, "allocating");
    arena_ = static_cast<std::byte*>(made);
    arena_bytes_ = bytes;
}

void DeviceMemory::begin(std::span<const protocol::WireTensor> tensors, std::uint32_t call_number) {
    call_number_ = call_number;
    laid_.clear();
    if (find_guarded_rooms(tensors)) return;
    std::size_t wanted = 0;
    for (const protocol::WireTensor& tensor : tensors)
        wanted += tensor.pages_bytes + 2 * zone_bytes;
    if (wanted > arena_bytes_) grow_arena(wanted);
    rooms_.clear();
    std::byte* next = arena_;
    for (const protocol::WireTensor& tensor : tensors) {
        rooms_.emplace_back(next, tensor.pages_bytes + 2 * zone_bytes);
        next += rooms_.back().size();
    }
}

void* DeviceMemory::lay(const protocol::WireTensor& tensor, std::byte* pages) {
    const std::span<std::byte> room = rooms_[laid_.size()];
    // Pages are pages on the device, too: what is a multiple of 64 bytes here is one there.
    const bool even = call_number_ % 2 == 0, guarded = guards_ != nullptr;
    Laid laid{tensor, pages, room.data(), zone_bytes, zone_bytes};
    if (guarded) (even ? laid.behind : laid.before) = 0;
    if (guarded && even) laid.device += room.size() - laid.bytes();
    std::vector<std::byte> block(laid.bytes(), zone_byte);
    std::memcpy(block.data() + laid.before, pages, tensor.pages_bytes);
    check(cuda_.memcpy(laid.device, block.data(), block.size(), to_device),
          "copying to the device");
    // It returns when it has read the block; the kernel's stream does not wait for the rest.
    check(cuda_.stream_synchronize(nullptr), "copying to the device");
    laid_.push_back(laid);
    return laid.device + laid.before + (tensor.data - tensor.pages);
}

std::string DeviceMemory::examine(const Laid& laid, const std::vector<std::byte>& now) const {
    const auto whole = [](const std::byte* zone, std::size_t bytes) {
        return std::all_of(zone, zone + bytes, [](std::byte b) { return b == zone_byte; });
    };
    const std::byte* const pages = now.data() + laid.before;
    if (!whole(now.data(), laid.before)) return "wrote before the pages of " + name_of(laid.tensor);
    if (!whole(pages + laid.tensor.pages_bytes, laid.behind))
        return "wrote behind the pages of " + name_of(laid.tensor);
    if (laid.tensor.access == protocol::Access::read &&
        std::memcmp(pages, laid.host, laid.tensor.pages_bytes) != 0)
        return "changed its input " + name_of(laid.tensor);
    return {};
}

std::string DeviceMemory::finish() {
    check(cuda_.stream_synchronize(stream()), "the kernel");
    std::string found;
    std::vector<std::byte> now;
    for (const Laid& laid : laid_) {
        now.resize(laid.bytes());
        check(cuda_.memcpy(now.data(), laid.device, now.size(), to_host), "copying back");
        if (found.empty()) found = examine(laid, now);
        if (laid.tensor.access == protocol::Access::write)
            std::memcpy(laid.host, now.data() + laid.before, laid.tensor.pages_bytes);
    }
    return found;
}

}  // namespace attest::worker
