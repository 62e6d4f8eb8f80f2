#pragma once
// The memory that host and worker share, as the host lays it out. Each tensor has a lane of its
// own: whole pages, at least a mebibyte of forbidden ones on either side. Inside its pages a tensor
// is flush with one end; what is left over is canary. Outputs and the workspace start as poison.
//
//     | guard | canary | lead (poison) | elements and gaps | guard |      flush right
//     | guard | lead (poison) | elements and gaps | canary | guard |      flush left

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/worker/placement.hpp"
#include "kernels/worker/protocol.hpp"

namespace attest::worker {

inline constexpr std::uint64_t page = 4096;  ///< of x86-64; elsewhere a multiple of it

/// What differs between one call and the next. The three patterns are NaN in every float format
/// and distinct in their low bits, so that a NaN copied from slack is not taken for an output that
/// was never written; as integers they are wild. Every two bytes of memory hold the pattern.
struct Variant {
    bool flush_right = true;
    bool aligned = false;  ///< tensors begin at multiples of 64 bytes (unless they have a lead)
    std::uint16_t canary = 0, poison = 0, workspace = 0;
};

/// The variant of a call: flush right where the number is even. Seeds permute the patterns.
Variant variant_of(std::uint64_t call_number, std::uint64_t seed, bool aligned) noexcept;

/// Whole pages, from the memory's start.
struct PageRange {
    std::uint64_t begin = 0, end = 0;
};

struct TensorSlot {
    std::uint16_t role = 0;
    protocol::Access access = protocol::Access::read;
    Placement placement;                       ///< of the workspace: bytes
    std::uint64_t pages = 0, pages_bytes = 0;  ///< whole pages, from the memory's start
    std::uint64_t data = 0;                    ///< the first element
    std::uint64_t lead_bytes = 0, span_bytes = 0;
    /// The pages that hold anything: all of them, or those of each row where rows lie far apart.
    /// Between them the memory file has holes.
    std::vector<PageRange> filled;
    std::uint64_t filled_bytes() const noexcept;

    bool is_workspace() const noexcept { return role == protocol::workspace_role; }
    std::uint64_t block() const noexcept { return data - lead_bytes; }
    std::uint64_t end() const noexcept { return data + span_bytes; }
};

/// A byte that is not what the host laid there.
struct Breach {
    std::size_t slot = 0;
    std::int64_t offset_bytes = 0;  ///< from the tensor's first byte
    bool in_tensor = false;         ///< an element of an input
};

/// A tensor whose rows lie far apart reaches over more addresses than this process may have.
class NoAddresses : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class Arena {
public:
    Arena();
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    int fd() const noexcept { return fd_; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    std::span<const TensorSlot> slots() const noexcept { return slots_; }
    std::byte* at(std::uint64_t offset) const noexcept { return base_ + offset; }

    void clear() { slots_.clear(); }
    void add(Role role, protocol::Access access, const Placement& placement);
    void add_workspace(std::uint64_t bytes);

    /// Gives every slot its place and fills it with canary, outputs and workspace with poison. The
    /// caller then scatters the inputs to at(slot.data). Throws NoAddresses, and stays as it was.
    void lay(const Variant& variant);
    /// Remembers the inputs as they are now.
    void seal();
    /// The first byte, in the order of slots, that the kernel had no business writing.
    std::optional<Breach> find_breach() const;
    /// The elements of an output, dense. poison_at: flat index of the first element that still
    /// holds the poison, -1 where none does.
    Tensor collect(const TensorSlot& slot, std::int64_t& poison_at) const;
    /// An element of it is a NaN made of what the workspace holds before the call.
    bool made_of_workspace(const Tensor& output) const;
    /// Gives memory of large calls back to the system.
    void release_large();

private:
    static constexpr std::uint64_t guard_bytes = 1 << 20;
    struct Extent {
        std::uint64_t lanes = 0, lane_bytes = 0;
        std::uint64_t far_bytes = 0;  ///< behind the lanes
        bool operator==(const Extent&) const = default;
        std::uint64_t lanes_end() const noexcept {
            return guard_bytes + lanes * (lane_bytes + guard_bytes);
        }
    };

    void require_bytes(std::uint64_t lane_bytes, std::uint64_t far_bytes);
    bool map(const Extent& extent);  ///< false: as it was
    void unmap();
    void punch(const TensorSlot& slot) const;  ///< its pages are a hole of the memory file again
    void fill_slot(const TensorSlot& slot) const;
    std::optional<std::uint64_t> find_changed(const TensorSlot& slot) const;
    std::optional<std::uint64_t> find_in_holes(const TensorSlot& slot) const;
    std::optional<std::uint64_t> find_changed_input(const TensorSlot& slot,
                                                    const std::byte* image) const;

    int fd_ = -1;
    std::byte* base_ = nullptr;
    std::uint64_t bytes_ = 0;
    Extent extent_;
    Variant variant_;
    std::vector<TensorSlot> slots_;
    std::vector<std::byte> image_;  ///< of all input slots, one after the other
};

}  // namespace attest::worker
