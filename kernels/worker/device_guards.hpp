#pragma once
// Device memory with nothing mapped on either side, for a GPU's copy of a tensor: what reaches past
// it ends the context instead of reading a neighbour. By the CUDA driver's virtual memory
// management, which maps whole granules (2 MiB): a room is kept for as long as it is large enough,
// so that only growing asks anything of the driver.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace attest::worker {

/// The two numbers are the driver's, as cuda.h has them.
struct DeviceLocation {
    int type = 1;  ///< a device
    int id = 0;
};
struct DeviceAllocation {
    int type = 1;  ///< pinned: the one kind there is
    int handle_types = 0;
    DeviceLocation location;
    void* handle_data = nullptr;
    std::uint64_t flags = 0;
};
struct DeviceAccess {
    DeviceLocation location;
    int flags = 3;  ///< read and write
};

class DeviceGuards {
public:
    /// Null where the driver has no such functions, or does not give a first room. The functions
    /// are the library's own, or those of the driver that is loaded.
    static std::unique_ptr<DeviceGuards> open(void* library);
    ~DeviceGuards();
    DeviceGuards(const DeviceGuards&) = delete;
    DeviceGuards& operator=(const DeviceGuards&) = delete;

    /// Room number so-and-so, of at least so many bytes: the first lies behind a guard, the last
    /// before one. Empty where the driver refuses. What it held is lost where it has to grow.
    std::span<std::byte> room(std::size_t number, std::size_t bytes);

private:
    using Address = std::uint64_t;
    struct Driver {
        int (*granularity)(std::size_t*, const DeviceAllocation*, int);
        int (*reserve)(Address*, std::size_t, std::size_t, Address, unsigned long long);
        int (*free)(Address, std::size_t);
        int (*create)(std::uint64_t*, std::size_t, const DeviceAllocation*, unsigned long long);
        int (*release)(std::uint64_t);
        int (*map)(Address, std::size_t, std::size_t, std::uint64_t, unsigned long long);
        int (*unmap)(Address, std::size_t);
        int (*set_access)(Address, std::size_t, const DeviceAccess*, std::size_t);
    };
    struct Room {
        Address begin = 0;  ///< of what is mapped; a guard lies on either side
        std::size_t bytes = 0;
    };
    DeviceGuards(const Driver& driver, std::size_t granule) : driver_(driver), granule_(granule) {}
    bool map(Room& room, std::size_t bytes);
    void unmap(Room& room);

    Driver driver_;
    std::size_t granule_;
    std::vector<Room> rooms_;
};

}  // namespace attest::worker
