#include "kernels/worker/device_guards.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>

namespace attest::worker {
namespace {

static_assert(sizeof(DeviceAllocation) == 32 && sizeof(DeviceAccess) == 12);  // as in cuda.h

template <typename Function>
bool find(void* driver, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(driver, name));
    return function != nullptr;
}

}  // namespace

std::unique_ptr<DeviceGuards> DeviceGuards::open(void* library) {
    void* driver = library;
    if (library == nullptr || ::dlsym(library, "cuMemCreate") == nullptr)
        driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) return nullptr;
    Driver d{};
    const bool all =
        find(driver, "cuMemGetAllocationGranularity", d.granularity) &&
        find(driver, "cuMemAddressReserve", d.reserve) &&
        find(driver, "cuMemAddressFree", d.free) && find(driver, "cuMemCreate", d.create) &&
        find(driver, "cuMemRelease", d.release) && find(driver, "cuMemMap", d.map) &&
        find(driver, "cuMemUnmap", d.unmap) && find(driver, "cuMemSetAccess", d.set_access);
    std::size_t granule = 0;
    const DeviceAllocation allocation;
    constexpr int least = 0;
    if (!all || d.granularity(&granule, &allocation, least) != 0 || granule == 0) return nullptr;
    std::unique_ptr<DeviceGuards> guards(new DeviceGuards(d, granule));
    return guards->room(0, granule).empty() ? nullptr : std::move(guards);
}

DeviceGuards::~DeviceGuards() {
    for (Room& room : rooms_) unmap(room);
}

bool DeviceGuards::map(Room& room, std::size_t bytes) {
    const DeviceAllocation allocation;
    const DeviceAccess access;
    Address reserved = 0;
    std::uint64_t memory = 0;
    if (driver_.reserve(&reserved, bytes + 2 * granule_, granule_, 0, 0) != 0) return false;
    const Address begin = reserved + granule_;
    bool done = driver_.create(&memory, bytes, &allocation, 0) == 0;
    if (done) {
        const bool mapped = driver_.map(begin, bytes, 0, memory, 0) == 0;
        done = mapped && driver_.set_access(begin, bytes, &access, 1) == 0;
        if (mapped && !done) driver_.unmap(begin, bytes);
        driver_.release(memory);  // it lives for as long as it is mapped
    }
    if (!done) driver_.free(reserved, bytes + 2 * granule_);
    if (done) room = {begin, bytes};
    return done;
}

void DeviceGuards::unmap(Room& room) {
    if (room.bytes == 0) return;
    driver_.unmap(room.begin, room.bytes);
    driver_.free(room.begin - granule_, room.bytes + 2 * granule_);
    room = {};
}

std::span<std::byte> DeviceGuards::room(std::size_t number, std::size_t bytes) {
    if (number >= rooms_.size()) rooms_.resize(number + 1);
    Room& room = rooms_[number];
    if (room.bytes < bytes) {
        unmap(room);
        // Twice as much each time: growing is rare. Granules are powers of two.
        if (!map(room, std::bit_ceil(std::max(bytes, granule_)))) return {};
    }
    // An address of the device, which no pointer here ever had.
    return {reinterpret_cast<std::byte*>(room.begin), room.bytes};
}

}  // namespace attest::worker
