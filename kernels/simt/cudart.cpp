#include "kernels/simt/cudart.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "kernels/simt/check.hpp"
#include "kernels/simt/options.hpp"

namespace {

constexpr std::size_t red_zone = 4096;
constexpr unsigned char poison = 0xFF;

thread_local cudaError_t pending = cudaSuccess;
std::mutex mutex;
std::map<void*, std::size_t>& allocations() {
    static std::map<void*, std::size_t> all;
    return all;
}

bool intact(const unsigned char* zone) {
    for (std::size_t i = 0; i < red_zone; ++i)
        if (zone[i] != poison) return false;
    return true;
}

double now_ms() {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

void simt::remember_error(cudaError_t error) {
    if (error != cudaSuccess) pending = error;
}

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
    const std::size_t rounded = (bytes + 255) / 256 * 256;
    auto* base = static_cast<unsigned char*>(
        std::aligned_alloc(4096, red_zone * 2 + (rounded + 4095) / 4096 * 4096));
    if (base == nullptr) return pending = cudaErrorMemoryAllocation;
    std::memset(base, poison, red_zone * 2 + rounded);
    *p = base + red_zone;
    const std::lock_guard lock(mutex);
    allocations()[*p] = bytes;
    if (simt::checker() != nullptr)
        simt::checker()->add_buffer(*p, bytes, "device buffer", false, red_zone);
    return cudaSuccess;
}

cudaError_t cudaFree(void* p) {
    if (p == nullptr) return cudaSuccess;
    const std::lock_guard lock(mutex);
    const auto found = allocations().find(p);
    if (found == allocations().end()) return pending = cudaErrorInvalidDevicePointer;
    auto* base = static_cast<unsigned char*>(p) - red_zone;
    if (!intact(base) || !intact(base + red_zone + (found->second + 255) / 256 * 256))
        simt::last_report().diagnostics.push_back(
            {"global_red_zone", "a write landed beside a device buffer of " +
                                    std::to_string(found->second) + " bytes"});
    if (simt::checker() != nullptr) simt::checker()->remove_buffer(p);
    allocations().erase(found);
    std::free(base);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return pending = cudaErrorInvalidValue;
    const simt::InRuntime in_runtime;
    std::memcpy(to, from, bytes);
    if (simt::checker() != nullptr && bytes != 0) simt::checker()->async_done(to, bytes, nullptr);
    return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
    const simt::InRuntime in_runtime;
    std::memset(to, value, bytes);
    if (simt::checker() != nullptr && bytes != 0) simt::checker()->async_done(to, bytes, nullptr);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    *stream = new simt_stream{1};
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = new simt_event{0};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    event->milliseconds = now_ms();
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    *milliseconds = static_cast<float>(end->milliseconds - start->milliseconds);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (device != 0) return pending = cudaErrorNoDevice;
    *properties = {};
    std::strncpy(properties->name, "attest SIMT runtime (CPU)", sizeof properties->name - 1);
    properties->major = 9;
    properties->multiProcessorCount = 1;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->sharedMemPerBlock = 48 * 1024;
    properties->sharedMemPerBlockOptin = 227 * 1024;
    properties->totalGlobalMem = std::size_t{1} << 32;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    cudaDeviceProp p;
    if (const cudaError_t error = cudaGetDeviceProperties(&p, device)) return error;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock:
            *value = p.maxThreadsPerBlock;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            *value = static_cast<int>(p.sharedMemPerBlock);
            break;
        case cudaDevAttrWarpSize:
            *value = p.warpSize;
            break;
        case cudaDevAttrMultiProcessorCount:
            *value = p.multiProcessorCount;
            break;
        case cudaDevAttrComputeCapabilityMajor:
            *value = p.major;
            break;
        case cudaDevAttrComputeCapabilityMinor:
            *value = p.minor;
            break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            *value = static_cast<int>(p.sharedMemPerBlockOptin);
            break;
        default:
            return pending = cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t cudaGetLastError() {
    const cudaError_t error = pending;
    pending = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError() {
    return pending;
}

const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "no error";
        case cudaErrorInvalidValue:
            return "invalid argument";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorInvalidConfiguration:
            return "invalid configuration argument";
        case cudaErrorInvalidDevicePointer:
            return "invalid device pointer";
        case cudaErrorNoDevice:
            return "no such device";
        case cudaErrorLaunchFailure:
            return "unspecified launch failure";
    }
    return "unknown error";
}
